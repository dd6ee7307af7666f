import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { executableName, hostTarget } from '../../bin/build/targets.mjs'
import { temporaryFolder } from '../helpers/temporary.js'

const root = join(import.meta.dirname, '../..')
const target = hostTarget()
const timeout = 180_000 // for what builds

test('a dry run builds the package and the executable of this machine, and changes nothing', { timeout }, async () => {
  const project = await clone()
  const { exitCode, stdout, stderr } = await release(project, ['1.0.0', '--dry-run'])
  expect({ exitCode, last: stderr.split('\n').at(-1) }).toEqual({
    exitCode: 0,
    last: 'Dry run: nothing was changed, and these files are gone',
  })
  expect(stdout).toBe(commands)
  for (const file of files) expect(stderr).toMatch(RegExp(`^ *\\d+\\.\\d MB  release/1\\.0\\.0/${file}$`, 'm'))
  expect({ changes: await git(project, 'status', '--porcelain'), release: existsSync(join(project, 'release')) }).toEqual({
    changes: '',
    release: false,
  })
})

test('a release sets the version, dates the changelog, and has files of that version; its tag can be built again', {
  timeout,
}, async () => {
  const project = await clone()
  const { exitCode, stdout, stderr } = await release(project, ['1.0.0', '--target', target])
  expect({ exitCode, stdout, stderr: exitCode === 0 ? '' : stderr }).toEqual({ exitCode: 0, stdout: commands, stderr: '' })
  const today = new Date().toISOString().slice(0, 10)
  expect(read(project, 'CHANGELOG.md')).toContain(`\n## [Unreleased]\n\n## [1.0.0] - ${today}\n\n`)
  expect(JSON.parse(read(project, 'package.json')).version).toBe('1.0.0')
  const { version, packages } = JSON.parse(read(project, 'package-lock.json'))
  expect([version, packages[''].version]).toEqual(['1.0.0', '1.0.0'])

  // The files, and the commands up to the one that needs a remote.
  const folder = join(project, 'release/1.0.0')
  expect(readdirSync(folder).toSorted()).toEqual(files.toSorted())
  expect((await execa('sha256sum', ['-c', '--quiet', 'SHA256SUMS'], { cwd: folder })).stdout).toBe('')
  expect((await execa(join(folder, executable), ['version', '--output', 'json'])).stdout).toContain('"version":"1.0.0"')
  const { stdout: main } = await execa('tar', ['-xzOf', join(folder, 'plant-store-1.0.0.tgz'), 'package/package.json'])
  expect(JSON.parse(main).version).toBe('1.0.0')
  const [commit = '', tag = ''] = stdout.split('\n')
  await execa('bash', ['-euc', `${commit}\n${tag}`], { cwd: project, env: author })
  expect(await git(project, 'status', '--porcelain')).toBe('')
  expect(await git(project, 'log', '-1', '--format=%s', 'v1.0.0')).toBe('Release 1.0.0')

  const again = await release(project, ['--tag', 'v1.0.0', '--target', target])
  expect({ exitCode: again.exitCode, stdout: again.stdout }).toEqual({ exitCode: 0, stdout: '' })
  expect(readdirSync(folder).toSorted()).toEqual(files.toSorted())
  expect(await release(project, ['--tag', 'v1.0.1'])).toMatchObject({
    exitCode: 1,
    stderr: 'The tag is of version 1.0.1, but package.json has 1.0.0\nTag the commit that sets version 1.0.1',
  })
  // Nothing has been added under [Unreleased].
  expect(await release(project, ['1.1.0'])).toMatchObject({
    exitCode: 1,
    stderr:
      'CHANGELOG.md has no entries for version 1.1.0\nDescribe the version in CHANGELOG.md, under ## [Unreleased] or ## [1.1.0] - YYYY-MM-DD',
  })
})

describe('a release is refused', () => {
  test.each([
    [[], 'One version is needed\n'],
    [['1.0.0', '2.0.0'], 'One version is needed\n'],
    [['1.0'], 'A version is like 1.0.0, not 1.0\n'],
    [['1.0.0-rc.1'], 'A version is like 1.0.0, not 1.0.0-rc.1\n'],
    [['1.0.0', '--publish'], "Unknown option '--publish'"],
  ])('of %j', async (args, message) => {
    const { exitCode, stdout, stderr } = await release(root, args)
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 2, stdout: '', stderr: expect.stringContaining(message) })
  })

  test('for a version that is not greater, and for a tree with changes', async () => {
    const project = await clone()
    expect(await release(project, ['0.1.0'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^Version 0\.1\.0 is not greater than 0\.1\.0\n/),
    })
    expect(await release(project, ['0.0.9'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^Version 0\.0\.9 is not greater than/),
    })
    writeFileSync(join(project, 'notes.txt'), '')
    const refused = { exitCode: 1, stdout: '', stderr: 'The working tree has changes:\n?? notes.txt\nCommit or remove them' }
    expect(await release(project, ['1.0.0', '--dry-run'])).toMatchObject(refused)
  })
})

const executable = executableName(`plants-${target}`, target)
const attached = ['LICENSES.txt', 'SHA256SUMS', executable, `plants-${target}.cdx.json`]
const files = ['NOTES.md', 'plant-store-1.0.0.tgz', ...attached]
const commands = `git commit --message 'Release 1.0.0' package.json package-lock.json CHANGELOG.md
git tag --annotate v1.0.0 --message 'plants 1.0.0'
git push origin HEAD v1.0.0

# The tag starts .github/workflows/release.yml, which builds again and publishes. Without it, in a CI that npm accepts for --provenance:
npm publish ./release/1.0.0/plant-store-1.0.0.tgz --access public --provenance
gh release create v1.0.0 --verify-tag --title 1.0.0 --notes-file release/1.0.0/NOTES.md \\
  ${attached.map((name) => `release/1.0.0/${name}`).join(' \\\n  ')}`

const author = Object.fromEntries(
  ['AUTHOR', 'COMMITTER'].flatMap((who) => [
    [`GIT_${who}_NAME`, 'Fern'],
    [`GIT_${who}_EMAIL`, 'fern@plants.example'],
  ]),
)

/** A clean repository of what is here, committed or not, with the packages that are installed here. */
async function clone(): Promise<string> {
  const project = temporaryFolder()
  const names = (await git(root, 'ls-files', '--cached', '--others', '--exclude-standard'))
    .split('\n')
    .filter((name) => existsSync(join(root, name)))
  for (const name of names) cpSync(join(root, name), join(project, name))
  symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'), 'junction')
  await git(project, 'init', '--quiet')
  writeFileSync(join(project, '.git/info/exclude'), 'node_modules\n') // .gitignore has it as a folder
  await git(project, 'add', '--all')
  await git(project, 'commit', '--quiet', '--message', 'All there is')
  return project
}

function release(project: string, args: string[]) {
  return execa(process.execPath, [join(project, 'bin/release.mjs'), ...args], { cwd: project, reject: false })
}

async function git(folder: string, ...args: string[]): Promise<string> {
  return (await execa('git', args, { cwd: folder, env: author })).stdout
}

function read(folder: string, name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}
