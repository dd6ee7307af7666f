import { lstatSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemCode } from '../../errors.js'
import { LoginError } from './login-methods.js'

/**
 * Looks at whom a Unix socket belongs to. In a folder like /tmp everybody can make the one of a server that is away, and would get the
 * password and the plants: there it must be of somebody who is trusted, of the folder's owner, or of PostgreSQL's own account.
 *
 * @param requirePeer the name or number of the only user that it may belong to, as libpq's parameter `requirepeer`
 * @param trusts whether a user is this one, or root
 * @throws {LoginError}
 */
export function checkSocketOwner(path: string, requirePeer: string | undefined, trusts: (uid: number) => boolean): void {
  if (process.platform === 'win32') return
  const { uid } = lstatSync(path)
  const name = nameOf(uid)
  const who = name ?? `the user ${uid}`
  if (requirePeer !== undefined) {
    if (requirePeer === name || requirePeer === String(uid)) return
    throw new LoginError(`its socket belongs to ${who}, and requirepeer is ${requirePeer}`)
  }
  const folder = statSync(dirname(path))
  const isOpenToAll = (folder.mode & 0o002) !== 0
  if (!isOpenToAll || uid === folder.uid || trusts(uid) || name === 'postgres' || name === '_postgres') return
  throw new LoginError(`its socket belongs to ${who}, in a folder where everybody can make one`, 'LOGIN_SOCKET')
}

/** The name of a user of this machine; undefined for one that is kept elsewhere. */
function nameOf(uid: number): string | undefined {
  try {
    const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
    return lines.map((line) => line.split(':')).find(([, , number]) => number === String(uid))?.[0]
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}
