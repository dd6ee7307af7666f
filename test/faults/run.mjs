// Plants one fault after the other in a copy of the project, and lists those that no test notices:
// npm run test:faults [-- NAME…]
//   NAME   only the faults with this in their names
// A fault is a patch of `src`, named after what it breaks. The line `tests:` above it has words, as
// vitest takes them: of all fast tests, those whose paths contain one of the words are run. The exit
// code is 1 if a fault is not noticed, its patch does not apply any more, the program cannot be built
// with it, or no path contains its words.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { print } from '../../bench/common.mjs'

const root = join(import.meta.dirname, '../..')
const bin = join(root, 'node_modules/.bin')
const vitestArgs = ['run', '--config', 'test/vitest.config.mts', '--project', 'suite']
vitestArgs.push('--exclude', 'process/**', '--bail', '1', '--maxWorkers', '2')
const words = process.argv.slice(2)
const names = readdirSync(import.meta.dirname)
  .filter((name) => name.endsWith('.patch'))
  .filter((name) => words.length === 0 || words.some((word) => name.includes(word)))
const notNoticed = 'not noticed'

const copy = mkdtempSync(join(tmpdir(), 'plants-faults-'))
try {
  copyProject()
  assertTestsPass()
  const results = names.map((name) => plant(name))
  const missedCount = results.filter((isNoticed) => !isNoticed).length
  if (names.length === 0) print(`No file of test/faults has ${words.join(' or ')} in its name`)
  else print(`${names.length} faults, ${missedCount} not noticed`)
  if (missedCount > 0 || names.length === 0) process.exitCode = 1
} finally {
  rmSync(copy, { recursive: true })
}

/** Copies the files that git knows, as they are in the working tree. */
function copyProject() {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
  for (const file of files.split('\0').filter(Boolean)) cpSync(join(root, file), join(copy, file))
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
}

function readFault(name) {
  const patch = readFileSync(join(import.meta.dirname, name), 'utf8')
  const testWords = /^tests: (?<list>.+)$/m.exec(patch)?.groups.list.split(' ')
  if (!testWords) throw new Error(`${name} has no line "tests:"`)
  return { patch, testWords }
}

/** A test that fails anyway would seem to notice each fault. */
function assertTestsPass() {
  if (names.length === 0) return
  const testWords = new Set(names.flatMap((name) => readFault(name).testWords))
  const { file, failure } = runTests([...testWords])
  if (failure !== notNoticed) throw new Error(`Without a fault: ${file ?? failure}`)
}

/** Returns whether a test has noticed the fault. */
function plant(name) {
  const { patch, testWords } = readFault(name)
  const fault = name.replace('.patch', '')
  const startedAt = performance.now()
  if (!apply(patch)) {
    print(`${fault}: its patch does not apply`)
    return false
  }
  const { file, failure } = runTests(testWords)
  apply(patch, '--reverse')
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  print(`${fault}: ${file === undefined ? failure : `noticed by ${file}`}, ${seconds} s`)
  return file !== undefined
}

function apply(patch, ...options) {
  return spawnSync('git', ['apply', ...options], { cwd: copy, input: patch }).status === 0
}

/** Returns the file of a test that fails, or why none did. */
function runTests(testWords) {
  const build = spawnSync(`${bin}/rolldown`, ['--config', 'rolldown.config.mjs'], { cwd: copy })
  if (build.status !== 0) return { failure: 'DOES NOT BUILD' }
  const options = { cwd: copy, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' } }
  const { status, stderr } = spawnSync(`${bin}/vitest`, [...vitestArgs, ...testWords], options)
  if (status === 0) return { failure: notNoticed }
  if (stderr.includes('No test files found')) return { failure: 'HAS NO TESTS' }
  return { file: / FAIL +\S+ +(?<file>\S+)/.exec(stderr)?.groups.file ?? 'a test' }
}
