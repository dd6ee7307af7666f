import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The environment without the user's settings, also those for PostgreSQL, and without NODE_EXTRA_CA_CERTS, for which
 * Node 20 reads certificates at every start.
 */
export function cleanEnvironment() {
  const foreign = /^(CI$|NODE_EXTRA_CA_CERTS$|PLANTS_|XDG_|PG[A-Z]+$)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)))
}

/** Makes a folder the home, for the settings, stores and journals that have no other place. */
export function homeIn(folder) {
  return { HOME: folder, LOCALAPPDATA: folder, APPDATA: folder }
}

/** Makes a folder that goes when this process does. `leave` is called just before. */
export function temporaryFolder(parent, leave) {
  const folder = mkdtempSync(join(parent, 'plants-bench-'))
  process.once('exit', () => {
    leave()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  // Not once: npm passes on the signal that came from the terminal already, and the second would end the removal.
  for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }))
    process.on(signal, () => process.exit(code))
  return folder
}

export function end(code, message) {
  process.stderr.write(`${message}\n`)
  process.exit(code)
}
