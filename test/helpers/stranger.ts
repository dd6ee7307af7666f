import { spawnSync } from 'node:child_process'
import { isLinux } from './linux.js'
import { bin, resultOf, startUnder } from './process.js'
import type { World } from './world.js'

/** A user without an account, whom root can become. Tests that need it say so in their names. */
export const stranger = 1234
export const becomeStranger = ['--reuid', `${stranger}`, '--regid', `${stranger}`, '--clear-groups']
export const canBecome =
  isLinux && process.getuid?.() === 0 && spawnSync('setpriv', [...becomeStranger, bin, '--version']).status === 0

/** Runs a command line of a user's as the stranger. */
export async function asStranger(user: World, command: string, variables: Record<string, string> = {}) {
  const env = { ...user.env, ...variables }
  return resultOf(startUnder('setpriv', becomeStranger, command.split(' '), user.home, { env, cwd: user.home }))
}
