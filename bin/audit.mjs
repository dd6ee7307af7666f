// Asks npm for advisories about every package of package-lock.json: npm run build && npm run audit.
// The exit code is 1 if one is about a package that is shipped: bundled, installed with the
// package, or in the executables. Advisories about packages that only build or test are warnings.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import packageLock from '../package-lock.json' with { type: 'json' }
import { sbomName } from './build/sbom.mjs'

const root = join(import.meta.dirname, '..')
const { components } = JSON.parse(readFileSync(join(root, 'dist', sbomName), 'utf8'))
const bundledIds = new Set(components.map(({ name, version }) => `${name}@${version}`))

const advisories = await fetchAdvisories()
for (const { isShipped, packageId, title, url } of advisories) {
  const usage = isShipped ? 'is shipped' : 'only builds or tests'
  print(isShipped ? 'error' : 'warning', `${packageId}, which ${usage}: ${title} (${url})`)
}
const shippedCount = advisories.filter(({ isShipped }) => isShipped).length
const otherCount = advisories.length - shippedCount
process.stdout.write(
  `Advisories: ${shippedCount} about what is shipped, ${otherCount} about the rest\n`,
)
if (shippedCount > 0) process.exitCode = 1

/** Fetches the advisories, each once for each version of its package in package-lock.json. */
async function fetchAdvisories() {
  const args = ['audit', '--package-lock-only', '--include=dev', '--json']
  // npm exits with 1 if there is any advisory.
  const { stdout } = await execa('npm', args, { cwd: root, reject: false })
  const { vulnerabilities, message } = JSON.parse(stdout)
  if (vulnerabilities === undefined) throw new Error(`npm audit failed: ${message}`)
  return Object.values(vulnerabilities).flatMap(({ name, via, nodes }) => {
    // A cause is an advisory, or the name of a dependency, which has an entry with its own causes.
    const causes = via.filter((cause) => typeof cause === 'object')
    return listVersions(name, nodes).flatMap(({ packageId, isShipped }) =>
      causes.map(({ title, url }) => ({ packageId, isShipped, title, url })),
    )
  })
}

/**
 * Lists the versions of a package that package-lock.json has at these paths. If two paths have the
 * same version, it is shipped if the package at one of them is shipped.
 */
function listVersions(name, paths) {
  const byId = new Map()
  for (const path of paths) {
    const { version, dev } = packageLock.packages[path]
    const packageId = `${name}@${version}`
    const isInstalled = dev !== true
    const isInExecutables = name === 'bun' || name.startsWith('@oven/bun-')
    const isShipped = isInstalled || isInExecutables || bundledIds.has(packageId)
    byId.set(packageId, { packageId, isShipped: isShipped || byId.get(packageId)?.isShipped })
  }
  return [...byId.values()]
}

/** Prints a line. In a run on GitHub, its prefix makes it an annotation on the page of the run. */
function print(severity, text) {
  const prefix = process.env.GITHUB_ACTIONS === 'true' ? `::${severity}::` : `${severity}: `
  process.stdout.write(`${prefix}${text}\n`)
}
