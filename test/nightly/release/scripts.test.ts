import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { runReleaseStep } from '../../helpers/expect/release-workflow.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

const root = join(import.meta.dirname, '../../..')

/** Runs a script of the project with a command line. */
async function runScript(line: string, cwd = root) {
  const options = { cwd, reject: false, env: { NO_COLOR: '1' } }
  const { exitCode, stdout, stderr } = await execa(process.execPath, line.split(' '), options)
  return { exitCode, stdout, stderr }
}

describe('a release', () => {
  const check = 'Check the version, the branch and the repository'

  /** Makes a folder with files, by their paths in it. */
  function writeFiles(files: Record<string, string>): string {
    const folder = createTemporaryFolder()
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), text)
    }
    return folder
  }

  /** Makes a clone with one commit on main, and then one that is on no branch of the remote. */
  async function clone(): Promise<string> {
    const repository = { url: 'git+https://github.com/garden/plants.git' }
    const cwd = writeFiles({ 'package.json': JSON.stringify({ version: '1.1.0', repository }) })
    const who = ['-c', 'user.name=Fern', '-c', 'user.email=fern@example.com']
    const git = (line: string) => execa('git', [...who, ...line.split(' ')], { cwd })
    await git('init --quiet')
    await git('add package.json')
    await git('commit --quiet --message=main')
    await git('update-ref refs/remotes/origin/main HEAD')
    await git('commit --quiet --allow-empty --message=aside')
    await git('update-ref refs/heads/aside HEAD')
    return cwd
  }

  test.each([
    { tag: 'v1.1.0', commit: 'origin/main', repository: 'garden/plants', error: 'none' },
    { tag: 'v1.1.1', commit: 'origin/main', repository: 'garden/plants', error: 'not v1.1.0' },
    { tag: '1.1.0', commit: 'origin/main', repository: 'garden/plants', error: 'not v1.1.0' },
    { tag: 'v1.1.0', commit: 'aside', repository: 'garden/plants', error: 'not on main' },
    {
      tag: 'v1.1.0',
      commit: 'origin/main',
      repository: 'fork/plants',
      error: 'another repository',
    },
  ])('of $commit in $repository with the tag $tag has the error: $error', async (scenario) => {
    const cwd = await clone()
    await execa('git', ['checkout', '--quiet', '--detach', scenario.commit], { cwd })
    const env = { GITHUB_REF_NAME: scenario.tag, GITHUB_REPOSITORY: scenario.repository }
    const { exitCode, stdout } = await runReleaseStep(check, cwd, env)
    const isAccepted = scenario.error === 'none'
    expect({ exitCode, stdout }).toEqual({
      exitCode: isAccepted ? 0 : 1,
      stdout: isAccepted ? '' : expect.stringMatching(RegExp(`^::error::.*${scenario.error}`, 'm')),
    })
  })

  test.each([
    { tag: 'v1.1.0', exitCode: 0, notes: '\n### Added\n\n- Trees.\n\n' },
    { tag: 'v1.0.1', exitCode: 1, notes: '' },
  ])(
    'with the tag $tag has the entries of the changelog as its notes',
    async ({ tag, exitCode, notes }) => {
      const entries = '## [1.1.0] - 2026-02-01\n\n### Added\n\n- Trees.\n\n## [1.0.0]\n\n- Ferns.\n'
      const cwd = writeFiles({
        'CHANGELOG.md': `# Changelog\n\n${entries}`,
        'release/LICENSES.txt': '',
      })
      const result = await runReleaseStep('Write the notes', cwd, { GITHUB_REF_NAME: tag })
      expect(result.exitCode).toBe(exitCode)
      expect(readFileSync(join(cwd, 'release/NOTES.md'), 'utf8')).toBe(notes)
    },
  )

  test('has the checksums of all that it publishes', async () => {
    const archive = 'plant-store-1.0.0.tgz'
    const names = [
      'LICENSES.txt',
      'sbom.cdx.json',
      archive,
      'plants-linux-x64',
      'plants-windows-x64.exe',
    ]
    const cwd = writeFiles(Object.fromEntries(names.map((name) => [`release/${name}`, name])))
    await runReleaseStep('Write the checksums', cwd)
    const options = { cwd: join(cwd, 'release') }
    const { stdout } = await execa('sha256sum', ['--check', 'SHA256SUMS'], options)
    expect(stdout.split('\n')).toEqual(names.map((name) => `${name}: OK`))
  })
})

test('a build fails if its Bun has not the integrity of package-lock.json', async () => {
  const folder = createTemporaryFolder()
  for (const name of ['bin', 'src', 'LICENSE', 'package.json', 'rolldown.config.mjs'])
    cpSync(join(root, name), join(folder, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const other = createHash('sha512').update('another').digest('base64')
  lock.packages['node_modules/@oven/bun-linux-aarch64-musl'].integrity = `sha512-${other}`
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
  const result = await runScript('bin/build-binary.mjs linux-arm64-musl', folder)
  expect(result).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('EINTEGRITY') })
  expect(existsSync(join(folder, 'release/plants-linux-arm64-musl'))).toBe(false)
})
