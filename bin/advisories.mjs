// Lists the advisories about packages that are bundled, from "moderate" up: npm run advisories. Reads dist/THIRD-PARTY.txt,
// so it needs a build, and the registry. The exit code is 1 when there is one, and when npm audit gives no report.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const severities = ['moderate', 'high', 'critical']

const bundled = new Set(
  Array.from(
    read('dist/THIRD-PARTY.txt').matchAll(/^-{80}\n(?<name>\S+) (?<version>\S+) \(/gm),
    ({ groups }) => [groups.name, groups.version].join('@'),
  ),
)
const { packages } = JSON.parse(read('package-lock.json'))
const { status, stdout } = spawnSync('npm', ['audit', '--json'], {
  cwd: root,
  encoding: 'utf8',
  shell: process.platform === 'win32', // where npm is no executable
})
const { vulnerabilities } = parse(stdout)
if (vulnerabilities === undefined) {
  process.stderr.write(`npm audit ended with ${status}, without a report\n${stdout}`)
  process.exitCode = 1
} else {
  const found = Object.values(vulnerabilities)
    .filter(({ severity }) => severities.includes(severity))
    .flatMap(({ name, severity, nodes, via }) =>
      nodes
        .map((node) => `${name}@${packages[node]?.version}`)
        .filter((each) => bundled.has(each))
        .map(
          (each) => `${each}: ${severity}: ${via.map((cause) => cause.url ?? cause).join(', ')}\n`,
        ),
    )
  process.stdout.write(
    `${found.join('')}${found.length} advisories about ${bundled.size} bundled packages\n`,
  )
  if (found.length > 0 || bundled.size === 0) process.exitCode = 1
}

function parse(json) {
  try {
    return JSON.parse(json)
  } catch {
    return {}
  }
}

function read(path) {
  return readFileSync(join(root, path), 'utf8').replaceAll('\r\n', '\n')
}
