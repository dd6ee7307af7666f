import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../helpers/temporary.js'

const root = join(import.meta.dirname, '../..')

/** Runs a script of the project with a command line. */
async function script(line: string, cwd = root) {
  const options = { cwd, reject: false, env: { NO_COLOR: '1' } }
  const { exitCode, stdout, stderr } = await execa(process.execPath, line.split(' '), options)
  return { exitCode, stdout, stderr }
}

test.each([
  ['test/soak.mjs kill', 'ROUNDS'],
  ['test/matrix.mjs --only 22,23', '--only'],
  ['test/windows.mjs --only 21', '--only'],
  ['bench/import.mjs --rows 1.5', '--rows'],
  ['bin/build-binary.mjs linux-x64 amiga', 'amiga'],
  ['bin/build-binary.mjs darwin-arm64', 'darwin-arm64'], // its Bun has no SQLite
])('%s ends with 2, and names %s', async (line, word) => {
  const stderr = expect.stringContaining(word)
  expect(await script(line)).toEqual({ exitCode: 2, stdout: '', stderr })
})

test.each([
  ['bench/start.mjs --runs 1', ['-e 0', 'create', 'create at a service']],
  ['bench/grow.mjs --sizes 1000 --runs 1', ['1,000']],
  [
    'bench/serve.mjs --connections 2 --syncs 0 --milliseconds 200 --rounds 1',
    ['2 kept, plants serve', '2 new, plants serve'],
  ],
])('%s measures', async (line, rows) => {
  const { exitCode, stdout } = await script(line)
  expect(exitCode).toBe(0)
  const figures = (row: string) => RegExp(`^(?:Node [\\d.]+: )?${row}  .*\\d`, 'm')
  expect(rows.filter((row) => !figures(row).test(stdout))).toEqual([])
})

describe('a release', () => {
  const workflow = readFileSync(join(root, '.github/workflows/release.yml'), 'utf8')

  /** Runs the command of the workflow that a pattern finds, in a folder with some files. */
  async function step(pattern: RegExp, tag: string, files: Record<string, string>) {
    const [, command = 'false'] = pattern.exec(workflow) ?? []
    const cwd = temporaryFolder()
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(cwd, name)), { recursive: true })
      writeFileSync(join(cwd, name), text)
    }
    const options = { cwd, reject: false, env: { GITHUB_REF_NAME: tag } }
    const { exitCode, stdout } = await execa('bash', ['-eo', 'pipefail', '-c', command], options)
    return { exitCode, stdout, cwd }
  }

  test.each([
    ['v1.1.0', 0],
    ['v1.1.1', 1],
    ['1.1.0', 1],
  ])('of version 1.1.0 has the tag v1.1.0: with %s, the exit code is %i', async (tag, code) => {
    const files = { 'package.json': '{"name":"x","version":"1.1.0"}' }
    expect((await step(/- run: (test .*) #/, tag, files)).exitCode).toBe(code)
  })

  test.each([
    ['v1.1.0', 0, '\n### Added\n\n- Trees.\n'],
    ['v1.0.1', 1, ''],
  ])('%s has the entries of the changelog as its notes', async (tag, exitCode, stdout) => {
    const entries = '## [1.1.0] - 2026-02-01\n\n### Added\n\n- Trees.\n\n## [1.0.0]\n\n- Ferns.\n'
    const files = { 'CHANGELOG.md': `# Changelog\n\n${entries}` }
    expect(await step(/- run: (awk .*) > /, tag, files)).toMatchObject({ exitCode, stdout })
  })

  test('has the checksums of its executables, licences and bill of materials', async () => {
    const names = ['LICENSES.txt', 'sbom.cdx.json', 'plants-linux-x64', 'plants-windows-x64.exe']
    const all = [...names, 'plant-store-1.0.0.tgz'].map((name) => [`release/${name}`, name])
    const { cwd } = await step(/- run: (.*sha256sum .*)/, '', Object.fromEntries(all))
    const check = { cwd: join(cwd, 'release') }
    const { stdout } = await execa('sha256sum', ['--check', 'SHA256SUMS'], check)
    expect(stdout.split('\n')).toEqual(names.map((name) => `${name}: OK`))
  })
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
  const result = await script('bin/build-binary.mjs linux-arm64-musl', folder)
  expect(result).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('EINTEGRITY') })
  expect(existsSync(join(folder, 'release/plants-linux-arm64-musl'))).toBe(false)
})
