import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import type { ProcessResult } from '../../helpers/sandbox/process.js'
import { findNextPosition } from '../../helpers/sandbox/rounds.js'
import type { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

// strace kills a command before one of its system calls, or makes that call fail. A test repeats
// the command with the fault at the first call of a kind, at a later one, and so on.

// In strace's words. A call that not every machine has is marked with "?".
export const renameCalls = '?rename,renameat,renameat2'
export const mkdirCalls = '?mkdir,mkdirat'
export const syncCalls = 'fsync,fdatasync'
export const fileCalls = ['pwrite64', syncCalls, 'ftruncate', '?unlink,unlinkat']

/** A kill before the call, or an error instead of it, which may last for all calls after it. */
export type Fault = 'kill' | { error: 'EIO' | 'ENOSPC'; isLasting: boolean }

export interface Scenario {
  command: string
  /** Each run starts with a copy of this user's home. */
  initial: Sandbox
  fault: Fault
  /** Kinds of system calls; each has its own series of runs. */
  calls: string[]
  /** The calls must be about one of these files, relative to the home. */
  files?: string[]
  /** Whether no call is left out, for a command that has few of them. */
  isExhaustive?: boolean
  /** Uses the store during a run. The function that it returns ends that. */
  useStore?: ((sandbox: Sandbox) => Promise<() => Promise<void>>) | undefined
}

/** A run of a command, and whether it came to the call with the fault. */
export interface FaultyRun {
  sandbox: ImportSandbox
  result: ProcessResult
  isHit: boolean
}

/**
 * Runs the command of a scenario with the fault at one call after the other, until a run ends
 * without having come to the fault. `findNextPosition` says which calls are left out.
 *
 * @param check what must be true after each run
 * @returns for each kind of calls how many runs came to the fault
 */
export function injectFaults(
  scenario: Scenario,
  check: (run: FaultyRun) => Promise<void>,
): Promise<number[]> {
  return settleAll(scenario.calls.map((call) => injectIntoCalls(scenario, call, check)))
}

async function injectIntoCalls(
  scenario: Scenario,
  call: string,
  check: (run: FaultyRun) => Promise<void>,
): Promise<number> {
  let position = 1
  for (let hits = 0; ; hits += 1) {
    const injection = formatInjection(scenario.fault, call, position)
    const run = await runWithFault(scenario, call, injection)
    try {
      await check(run)
    } catch (error) {
      const { command } = scenario
      const message = `${command} with ${injection}: ${JSON.stringify(run.result)}`
      throw new Error(message, { cause: error })
    }
    if (!run.isHit) return hits
    position = scenario.isExhaustive ? position + 1 : findNextPosition(position)
  }
}

/** @param position which of the calls has the fault, from 1 */
function formatInjection(fault: Fault, call: string, position: number): string {
  if (fault === 'kill') return `inject=${call}:signal=KILL:when=${position}`
  const andLater = fault.isLasting ? '+' : ''
  return `inject=${call}:error=${fault.error}:when=${position}${andLater}`
}

async function runWithFault(
  { command, initial, fault, files = [], useStore }: Scenario,
  call: string,
  injection: string,
): Promise<FaultyRun> {
  const sandbox = new ImportSandbox()
  cpSync(initial.home, sandbox.home, { recursive: true })
  const log = join(createTemporaryFolder(), 'log')
  const tracer = ['strace', '-f', '-o', log, '-e', `trace=${call},statfs`, '-e', injection]
  // strace does not know the paths of these calls.
  const hasPath = call !== 'write' && call !== renameCalls
  if (hasPath) tracer.push(...files.flatMap((name) => ['-P', join(sandbox.home, name)]))
  // A disk that fails to write does not tell how full it is either.
  if (fault !== 'kill') tracer.push('--seccomp-bpf', '-e', 'inject=statfs:error=EIO')
  const endUse = await useStore?.(sandbox)
  const result = await sandbox.spawn(command, {}, ...tracer)
  await endUse?.()
  return { sandbox, result, isHit: hasFault(readFileSync(log, 'utf8')) }
}

/** Whether a trace shows the fault. Each trace may show the error of statfs. */
function hasFault(trace: string): boolean {
  return /^(?!.* statfs\().*(\(INJECTED\)|--- SIGINT |killed by SIGKILL)/m.test(trace)
}

/** Waits for all, even when one fails: the folders of a test must outlast what uses them. */
export async function settleAll<T>(running: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(running)
  return Promise.all(running)
}
