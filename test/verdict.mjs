// Adds up JSON reports of vitest, and lists what was skipped and why: node test/verdict.mjs FOLDER COUNT
// The exit code is 1 when a test failed, there are not COUNT reports or one is empty, or a test was skipped for a
// reason that is not below.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { print } from '../bench/common.mjs'

/**
 * What a test may need that a machine with all that .ci/run installs does not have. A test says in its name what it
 * needs.
 */
const reasons = [
  'needs a user that is not root',
  'needs Node 22.1', // keeps the digits of a number in JSON
  'needs Node 24.15', // has the SQLite that is used
  'needs Node as its runtime', // and not that of the executable
  'needs both in the hosts file',
  'needs Patroni and etcd, in a soak', // which .ci/run does not install
  'needs Litestream, in a soak',
  'needs LibreOffice, in a soak',
]

const [folder, count] = process.argv.slice(2)
const reports = readdirSync(folder).map((name) =>
  JSON.parse(readFileSync(join(folder, name), 'utf8')),
)
const results = reports.flatMap(({ testResults }) => testResults)
const tests = results.flatMap(({ assertionResults }) => assertionResults)
const failed =
  tests.filter(({ status }) => status === 'failed').length + results.filter(isBroken).length
const passed = tests.filter(({ status }) => status === 'passed').length
const skipped = tests.filter(({ status }) => !['passed', 'failed'].includes(status))

const skippedBy = new Map()
for (const { fullName } of skipped)
  skippedBy.set(reasonOf(fullName), [...(skippedBy.get(reasonOf(fullName)) ?? []), fullName])
for (const [reason, names] of skippedBy)
  print(
    `skipped, ${reason ?? 'for no reason that is allowed'}: ${names.length}\n  ${names.join('\n  ')}`,
  )
const isWhole =
  reports.length === Number(count) && reports.every(({ numPassedTests }) => numPassedTests > 0)
if (!isWhole)
  print(
    `${reports.length} reports with ${reports.map(({ numPassedTests }) => numPassedTests).join(', ')} tests passed, but ${count} were wanted`,
  )
print(`${passed} passed, ${failed} failed, ${skipped.length} skipped`)
if (failed > 0 || !isWhole || skippedBy.has(undefined)) process.exitCode = 1

/** A file that failed as a whole, before any of its tests did. */
function isBroken({ status, assertionResults }) {
  return status === 'failed' && !assertionResults.some((test) => test.status === 'failed')
}

function reasonOf(name) {
  return reasons.find((reason) => name.includes(`(${reason})`))
}
