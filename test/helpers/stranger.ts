import { spawnSync } from 'node:child_process'
import type { Options } from 'execa'
import { isLinux } from './linux.js'
import { bin, type ProcessResult, resultOf, startUnder } from './process.js'
import type { World } from './world.js'

/** A user without an account, whom root can become. Tests that need it say so in their names. */
export const stranger = 1234
export const becomeStranger = ['--reuid', `${stranger}`, '--regid', `${stranger}`, '--clear-groups']
export const canBecome =
  isLinux && process.getuid?.() === 0 && spawnSync('setpriv', [...becomeStranger, bin, '--version']).status === 0

/** Runs a command line of a user's as the stranger. */
export function asStranger(user: World, command: string, variables: Record<string, string> = {}) {
  return under(user, 'setpriv', becomeStranger, command, { env: variables })
}

/** Runs a command line of a user's under another program, such as a tracer. */
export function under(
  user: World,
  program: string,
  programArgs: string[],
  command: string,
  { env, ...options }: Options = {},
): Promise<ProcessResult> {
  const args = command === '' ? [] : command.split(' ')
  const all = { cwd: user.home, ...options, env: { ...user.env, ...env } }
  return resultOf(startUnder(program, programArgs, args, user.home, all))
}
