import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Options } from 'execa'
import { countsOf, importsIn, journalsIn, writeLines } from './import.js'
import { start, startUnder } from './process.js'
import { temporaryFolder } from './temporary.js'

export const remoteToken = 's3cret-of-this-test'
export const goOn = 'To resume, run the same command again'

/** Somebody who imports the file plants.ndjson of a folder of their own into a service. */
export class RemoteImport {
  readonly folder = temporaryFolder()
  readonly #args: string[]

  constructor(lines: readonly string[], store: string, ...flags: string[]) {
    writeLines(this.folder, lines)
    this.#args = ['import', 'plants.ndjson', '--store', store, ...flags]
  }

  start(...flags: string[]) {
    return this.startWith({}, ...flags)
  }

  startUnder(tracer: string, tracerArgs: string[]) {
    return startUnder(tracer, tracerArgs, this.#args, this.folder, {
      cwd: this.folder,
      env: { PLANTS_TOKEN: remoteToken },
    })
  }

  startWith({ env, ...options }: Options, ...flags: string[]) {
    const variables = { PLANTS_TOKEN: remoteToken, ...env }
    return start([...this.#args, ...flags], this.folder, { cwd: this.folder, env: variables, ...options })
  }

  /** Starts it while its service is not there, and resolves when it has found that out. */
  async startInVain(...flags: string[]): Promise<{ child: ReturnType<typeof start> }> {
    const child = this.start('--verbose', ...flags)
    await new Promise<void>((resolve) => {
      child.stderr?.on('data', (chunk: Buffer) => {
        if (chunk.includes('* failed')) resolve()
      })
    })
    return { child }
  }

  async run(...flags: string[]): Promise<RemoteResult> {
    return this.resultOf(await this.start(...flags))
  }

  async runWith(env: Record<string, string>, ...flags: string[]): Promise<RemoteResult> {
    return this.resultOf(await this.startWith({ env }, ...flags))
  }

  resultOf({ exitCode, signal, stdout, stderr }: Awaited<ReturnType<typeof start>>): RemoteResult {
    const out = String(stdout)
    return {
      code: exitCode ?? signal,
      counts: out === '' ? undefined : countsOf(out),
      err: String(stderr),
      journals: this.journals,
    }
  }

  get journals(): number {
    return journalsIn(this.folder).length
  }

  /** Whether its journal says that a part of the input is done. */
  get hasPosition(): boolean {
    const [name] = journalsIn(this.folder)
    try {
      return name !== undefined && readFileSync(join(importsIn(this.folder), name), 'utf8').includes('"position"')
    } catch {
      return false // it is done, and has removed its journal
    }
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8')
  }

  /** The line, the error and the message of each reason beside a rejects file, without the last line. */
  reasons(name: string): { line: number; error: number; message: string }[] {
    const lines = this.read(`${name}.reasons`).split('\n').slice(0, -2)
    return lines.map((line) => JSON.parse(line) as { line: number; error: number; message: string })
  }
}

export interface RemoteResult {
  code: number | string | undefined
  counts: object | undefined
  err: string
  /** how many are left */
  journals: number
}

/** Settings with a store named "team" whose token is what a shell command prints, in a folder of their own. */
export function teamSettings(address: string, command: string): string {
  const folder = temporaryFolder()
  const program = join(folder, 'token')
  writeFileSync(program, `#!/bin/sh\ncd ${folder}\n${command}\n`, { mode: 0o700 })
  const settings = { version: 1, stores: { team: { address, 'token-command': program } } }
  writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings), { mode: 0o600 })
  return folder
}

/** What holds answers back until it is opened. */
export class Gate {
  open = (): void => {}
  readonly opening = new Promise<undefined>((resolve) => {
    this.open = () => resolve(undefined)
  })
}

/** The id of a plant in a line of JSON. */
export function idOf(line: string): string {
  return /-?\d+/.exec(line)?.[0] ?? ''
}

/** That each plant of some lines was made once, as a `PlantService` counts. */
export function eachOnce(lines: readonly string[]): Map<string, number> {
  return new Map(lines.map((line) => [idOf(line), 1]))
}
