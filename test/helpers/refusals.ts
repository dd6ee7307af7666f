import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type Result, runPlants } from './run.js'
import { temporaryFolder } from './temporary.js'

/** What is given: the arguments, which a text separates with spaces, and what is on stdin and in files. */
interface Given {
  argv: string | string[]
  stdin?: string | Uint8Array
  files?: Record<string, string | Uint8Array>
  env?: Record<string, string>
}

/** A command line, and what it must be refused with: the exit code, the error value, the message and the hint. */
export type Refusal = [given: Given, code: number, error: number, message: string, hint?: string]

/** Holds what a command line gives against what it must; nothing is stored. */
export async function expectRefusal(
  [given, code, error, message, hint]: Refusal,
  flags = ['--output', 'json'],
): Promise<void> {
  const { err, ...result } = await refused(given, flags)
  expect({ ...result, error: JSON.parse(err) }).toEqual({
    code,
    out: '',
    error: hint === undefined ? { error, message } : { error, message, hint },
    stored: false,
  })
}

/** What a command line gives in a world where nothing is stored yet, and whether something is afterwards. */
export async function refused(given: Given, flags: string[] = []): Promise<Result & { stored: boolean }> {
  const folder = temporaryFolder()
  const data = join(folder, 'data')
  const cwd = join(folder, 'work')
  mkdirSync(cwd)
  for (const [name, content] of Object.entries(given.files ?? {})) writeFileSync(join(cwd, name), content)
  const argv = typeof given.argv === 'string' ? given.argv.split(' ') : given.argv
  const result = await runPlants([...flags, ...argv], { ...given, cwd, env: { PLANTS_DATA_DIR: data, ...given.env } })
  return { ...result, stored: existsSync(data) || readdirSync(cwd).length > Object.keys(given.files ?? {}).length }
}

/** What a command line, its environment and its document look like in the name of a test. */
export function titleOf({ argv, stdin, files, env }: Given): string {
  const content = stdin ?? files?.['a']
  const shown =
    typeof content === 'string'
      ? JSON.stringify(content.slice(0, 60))
      : Buffer.from(content ?? []).toString('hex', 0, 30)
  const line = [Object.values(env ?? {}), argv].flat().join(' ').slice(0, 80)
  return JSON.stringify(line).slice(1, -1) + (content === undefined ? '' : ` < ${shown}`)
}
