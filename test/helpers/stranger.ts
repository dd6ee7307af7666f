import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Options } from 'execa'
import { isLinux } from './linux.js'
import { bin, type ProcessResult, resultOf, startUnder } from './process.js'
import type { World } from './world.js'

/** A user without an account, whom root can become. Tests that need it say so in their names. */
export const stranger = 1234
export const becomeStranger = ['--reuid', `${stranger}`, '--regid', `${stranger}`, '--clear-groups']
export const canBecome =
  isLinux &&
  process.getuid?.() === 0 &&
  spawnSync('setpriv', [...becomeStranger, bin, '--version']).status === 0

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

const isRoot = process.getuid?.() === 0
export const canDropRights =
  process.platform !== 'win32' && (!isRoot || existsSync('/usr/bin/setpriv'))

/** Starts a command line of a user's without the rights of root, who may write anywhere. */
export function startWithoutRights(user: World, line: string, options: Options = {}) {
  if (!isRoot) return user.start(line, options)
  const bare = ['--bounding-set', '-all', '--inh-caps', '-all']
  return startUnder('setpriv', bare, line.split(' '), user.home, { env: user.env, ...options })
}
