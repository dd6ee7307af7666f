// Adds up JSON reports of vitest, and lists what was skipped and why:
// node test/verdict.mjs FOLDER COUNT
// The exit code is 1 if a test failed, if there are not COUNT reports or one is empty, or if a test
// was skipped for a reason that is not listed below.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { print } from '../bench/common.mjs'

/** What a machine may lack although .ci/run ran there. A test says in its name what it needs. */
const allowedReasons = [
  'needs a user that is not root',
  'needs Node 22.1', // It keeps the digits of a number in JSON.
  'needs Node 24.15', // It has the SQLite that is used.
  'needs Node as its runtime', // The executable has another one.
  'needs both in the hosts file',
  'needs Patroni and etcd, in a soak', // .ci/run does not install them, nor what follows.
  'needs Litestream, in a soak',
  'needs LibreOffice, in a soak',
]

const [folder, expectedCount] = process.argv.slice(2)
const reports = readdirSync(folder).map((name) =>
  JSON.parse(readFileSync(join(folder, name), 'utf8')),
)
const files = reports.flatMap(({ testResults }) => testResults)
const tests = files.flatMap(({ assertionResults }) => assertionResults)
const failedCount =
  tests.filter(({ status }) => status === 'failed').length + files.filter(isBroken).length
const passedCount = tests.filter(({ status }) => status === 'passed').length
const skipped = tests.filter(({ status }) => !['passed', 'failed'].includes(status))

const skippedByReason = groupByReason(skipped.map(({ fullName }) => fullName))
for (const [reason, names] of skippedByReason) {
  const why = reason ?? 'for no reason that is allowed'
  print(`skipped, ${why}: ${names.length}\n  ${names.join('\n  ')}`)
}
const passedCounts = reports.map(({ numPassedTests }) => numPassedTests)
const isComplete =
  reports.length === Number(expectedCount) && passedCounts.every((count) => count > 0)
if (!isComplete)
  print(
    `${expectedCount} reports are needed, each with tests that passed; ` +
      `${reports.length} are there, with ${passedCounts.join(', ')}`,
  )
print(`${passedCount} passed, ${failedCount} failed, ${skipped.length} skipped`)
if (failedCount > 0 || !isComplete || skippedByReason.has(undefined)) process.exitCode = 1

/** Tells whether a file failed as a whole, before any of its tests did. */
function isBroken({ status, assertionResults }) {
  return status === 'failed' && !assertionResults.some((test) => test.status === 'failed')
}

/** Groups the names of tests by the reason in them, which is undefined if it is not allowed. */
function groupByReason(names) {
  const groups = new Map()
  for (const name of names) {
    const reason = allowedReasons.find((candidate) => name.includes(`(${candidate})`))
    groups.set(reason, [...(groups.get(reason) ?? []), name])
  }
  return groups
}
