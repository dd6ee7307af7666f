import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'

/** Whether a program is on this machine. */
export function isHere(program: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, program)))
}

/** Runs a program, which must accept what it reads, and gives what it prints. */
export function run(
  program: string,
  ...given: (string | Record<string, string | undefined>)[]
): string {
  const args = given.filter((each) => typeof each === 'string')
  const env = Object.assign({ ...process.env }, ...given.filter((each) => typeof each !== 'string'))
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', env })
  expect(status, stdout + stderr).toBe(0)
  return stdout + stderr
}
