import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../helpers/temporary.js'

const root = join(import.meta.dirname, '../..')

/** Runs a script of the project with a command line. */
async function script(line: string, env: Record<string, string> = {}) {
  const [path = '', ...args] = line.split(' ')
  const options = { cwd: root, reject: false, env: { NO_COLOR: '1', ...env } }
  const { exitCode, stdout, stderr } = await execa(process.execPath, [path, ...args], options)
  return { exitCode, stdout, stderr }
}

test.each([
  [
    'test/soak.mjs kill',
    'npm run soak -- ROUNDS [NAME]: ROUNDS must be a whole number from 1 up, but was kill',
  ],
  [
    'test/matrix.mjs --only 22,23',
    '--only must be some of 20.19,22,24,26,executable,arm64,arm64-executable,musl,own, but has 23',
  ],
  [
    'test/matrix.mjs --node 22',
    "npm run test:matrix -- [--only 20.19,22,24,26,executable] [PATTERN…]: Unknown option '--node'",
  ],
  ['bench/start.mjs --runs 0', '--runs must be a whole number from 1 up'],
  ['bench/start.mjs --node /nowhere/node', '--node /nowhere/node is no Node that can be started'],
  ['bench/serve.mjs --only creates,updates', '--only some of creates,open,reads,peers,memory'],
  [
    'bench/import.mjs --rows 1.5',
    '--rows and --rounds must be whole numbers from 1 up, --only some of sqlite,postgres,texts',
  ],
  ['test/conformance.mjs', 'npm run conformance needs Java 17 or newer'],
  [
    'bin/build-binary.mjs linux-x64 amiga',
    'There is no target amiga\nThe targets are linux-x64, linux-arm64, linux-x64-musl, ',
  ],
  ['bin/build-binary.mjs darwin-arm64', 'There is no target darwin-arm64\n'], // its Bun has no SQLite
  ['bin/build-binary.mjs --fast', 'There is no target --fast\n'],
  [
    'test/windows.mjs',
    'needs wine. On Debian, install it with: apt-get install --no-install-recommends wine wine64',
  ],
  ['test/windows.mjs --only 21', '--only must be some of 20,22,24,26, but has 21'],
])('%s: exit code 2', async (line, message) => {
  const env = /conformance|windows/.test(line) ? { PATH: '' } : {}
  expect(await script(line, env)).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: expect.stringContaining(message),
  })
})

test('the start is measured beside a bare runtime', async () => {
  const { exitCode, stdout } = await script('bench/start.mjs --runs 1')
  expect(exitCode).toBe(0)
  const bare = `Node ${process.versions.node}: -e 0`
  expect(lineOf(bare, stdout)).toMatch(/^[\d.]+ +- +- +- +[\d.]+$/)
  for (const what of ['create', 'create at a service'])
    expect(lineOf(`Node ${process.versions.node}: ${what}`, stdout), what).toMatch(
      /^[\d.]+ +[\d.]+ +-e 0 +at most [\d.]+: (met|missed) +[\d.]+$/,
    )
})

test('each kind of load is measured beside an echo', async () => {
  const few = '--connections 2 --syncs 0 --seconds 0.2 --rounds 1'
  const { exitCode, stdout, stderr } = await script(`bench/serve.mjs ${few}`)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const figures = (goal: string) => String.raw`[\d,.]+ +[\d.]+ +${goal} +[\d,.]+ +[\d,.]+ +[\d.-]+$`
  for (const kind of ['kept', 'new']) {
    expect(stdout).toMatch(RegExp(`^2 ${kind} +plants serve +${figures('-')}`, 'm'))
    expect(lineOf(`this disk, ${kind}`, stdout)).toMatch(
      /^plants serve +[\d,.]+ +[\d,.]+ +[\d,.]+ +[\d,.]+$/,
    )
  }
  expect(stdout).toMatch(RegExp(`^plants serve +${figures('at least 0.65: (met|missed)')}`, 'm'))
})

test('the notes of a release are its entries in the changelog', async () => {
  const workflow = readFileSync(join(root, '.github/workflows/release.yml'), 'utf8')
  const command = /- run: (awk .*) > /.exec(workflow)?.[1] ?? ''
  const folder = temporaryFolder()
  const entries = '### Added\n\n- Trees.'
  writeFileSync(
    join(folder, 'CHANGELOG.md'),
    `# Changelog\n\n## [1.1.0] - 2026-02-01\n\n${entries}\n\n## [1.0.0]\n\n- Ferns.\n`,
  )
  const notes = (tag: string) =>
    execa('bash', ['-eo', 'pipefail', '-c', command], {
      cwd: folder,
      reject: false,
      env: { GITHUB_REF_NAME: tag },
    })
  expect(await notes('v1.1.0')).toMatchObject({ exitCode: 0, stdout: `\n${entries}\n` })
  expect(await notes('v1.0.1')).toMatchObject({ exitCode: 1, stdout: '' })
})

/** The rest of a line after its title. */
function lineOf(title: string, text: string): string | undefined {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${title}  `))
  return line?.slice(title.length).trim()
}

test.each([
  ['v1.1.0', 0],
  ['v1.1.1', 1],
  ['1.1.0', 1],
])('version 1.1.0 is released by the tag %s: exit code %i', async (tag, exitCode) => {
  const workflow = readFileSync(join(root, '.github/workflows/release.yml'), 'utf8')
  const command = /- run: (test .*) #/.exec(workflow)?.[1] ?? ''
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'package.json'), '{"name":"x","version":"1.1.0"}')
  const options = { cwd: folder, reject: false, env: { GITHUB_REF_NAME: tag } }
  expect((await execa('bash', ['-eo', 'pipefail', '-c', command], options)).exitCode).toBe(exitCode)
})

test('the checksums of a release are those of its executables and licences', async () => {
  const workflow = readFileSync(join(root, '.github/workflows/release.yml'), 'utf8')
  const command = /- run: (.*sha256sum .*)/.exec(workflow)?.[1] ?? ''
  const release = join(temporaryFolder(), 'release')
  mkdirSync(release)
  const names = ['LICENSES.txt', 'plants-linux-x64', 'plants-windows-x64.exe']
  for (const name of [...names, 'plant-store-1.0.0.tgz']) writeFileSync(join(release, name), name)
  await execa('bash', ['-eo', 'pipefail', '-c', command], { cwd: dirname(release) })
  const { stdout } = await execa('sha256sum', ['--check', 'SHA256SUMS'], { cwd: release })
  expect(stdout.split('\n')).toEqual(names.map((name) => `${name}: OK`))
})

test('a Bun that is not the one of package-lock.json is not compiled in', async () => {
  const folder = temporaryFolder()
  for (const name of ['bin', 'src', 'LICENSE', 'package.json', 'rolldown.config.mjs'])
    cpSync(join(root, name), join(folder, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const other = createHash('sha512').update('another').digest('base64')
  lock.packages['node_modules/@oven/bun-linux-aarch64-musl'].integrity = `sha512-${other}`
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
  const options = { cwd: folder, reject: false }
  const args = ['bin/build-binary.mjs', 'linux-arm64-musl']
  const { exitCode, stdout, stderr } = await execa(process.execPath, args, options)
  const failure = { exitCode: 1, stdout: '', stderr: expect.stringContaining('EINTEGRITY') }
  expect({ exitCode, stdout, stderr }).toEqual(failure)
  expect(existsSync(join(folder, 'release/plants-linux-arm64-musl'))).toBe(false)
})
