import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { executableName, hostTarget } from '../../bin/build/targets.mjs'
import { version as current } from '../../package.json'
import { temporaryFolder } from '../helpers/temporary.js'

const root = join(import.meta.dirname, '../..')
const target = hostTarget()
const next = `${Number(current.split('.')[0]) + 1}.0.0`
const timeout = 180_000 // for what builds

test('a dry run builds all, and changes nothing', { timeout }, async () => {
  const project = await clone()
  const { exitCode, stdout, stderr } = await release(project, [next, '--dry-run'])
  expect([exitCode, stderr.split('\n').at(-1)]).toEqual([0, 'Dry run: nothing was changed, and these files are gone'])
  expect(stdout).toBe(commands)
  for (const file of files) expect(stderr).toMatch(RegExp(`^ *\\d+\\.\\d MB  release/${next}/${file}$`, 'm'))
  expect([await git(project, 'status', '--porcelain'), existsSync(join(project, 'release'))]).toEqual(['', false])
})

test('a release has files of its version, and its tag can be built again', {
  timeout,
}, async () => {
  const project = await clone()
  const { exitCode, stdout, stderr } = await release(project, [next, '--target', target])
  expect([exitCode, stdout, exitCode === 0 ? '' : stderr]).toEqual([0, commands, ''])
  const today = new Date().toISOString().slice(0, 10)
  expect(read(project, 'CHANGELOG.md')).toContain(`\n## [Unreleased]\n\n## [${next}] - ${today}\n\n`)
  expect(JSON.parse(read(project, 'package.json')).version).toBe(next)
  const { version, packages } = JSON.parse(read(project, 'package-lock.json'))
  expect([version, packages[''].version]).toEqual([next, next])

  // The files, and the commands up to the one that needs a remote.
  const folder = join(project, `release/${next}`)
  expect(readdirSync(folder).toSorted()).toEqual(files.toSorted())
  expect((await execa('sha256sum', ['-c', '--quiet', 'SHA256SUMS'], { cwd: folder })).stdout).toBe('')
  expect((await execa(join(folder, executable), ['version', '--output', 'json'])).stdout).toContain(
    `"version":"${next}"`,
  )
  const tar = ['-xzOf', join(folder, `plant-store-${next}.tgz`), 'package/package.json']
  expect(JSON.parse((await execa('tar', tar)).stdout).version).toBe(next)
  const [commit = '', tag = ''] = stdout.split('\n')
  await execa('bash', ['-euc', `${commit}\n${tag}`], { cwd: project, env: author })
  expect(await git(project, 'status', '--porcelain')).toBe('')
  expect(await git(project, 'log', '-1', '--format=%s', `v${next}`)).toBe(`Release ${next}`)

  const again = await release(project, ['--tag', `v${next}`, '--target', target])
  expect({ exitCode: again.exitCode, stdout: again.stdout }).toEqual({ exitCode: 0, stdout: '' })
  expect(readdirSync(folder).toSorted()).toEqual(files.toSorted())
  expect(await release(project, ['--tag', 'v0.0.1'])).toMatchObject({
    exitCode: 1,
    stderr: `The tag is of version 0.0.1, but package.json has ${next}\nTag the commit that sets version 0.0.1`,
  })
  // Nothing has been added under [Unreleased].
  const later = next.replace(/0$/, '1')
  expect(await release(project, [later])).toMatchObject({
    exitCode: 1,
    stderr: `CHANGELOG.md has no entries for version ${later}\nDescribe the version in CHANGELOG.md, under ## [Unreleased] or ## [${later}] - YYYY-MM-DD`,
  })
})

describe('a release is refused', () => {
  test('for a version that is not greater, and for a tree with changes', async () => {
    const project = await clone()
    for (const version of [current, '0.0.1']) {
      const message = `Version ${version} is not greater than ${current}\n`
      expect(await release(project, [version])).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(message) })
    }
    writeFileSync(join(project, 'notes.txt'), '')
    const stderr = 'The working tree has changes:\n?? notes.txt\nCommit or remove them'
    expect(await release(project, [next, '--dry-run'])).toMatchObject({ exitCode: 1, stdout: '', stderr })
  })

  test.each([
    [{}, 'repository, homepage, bugs'],
    [{ ...addresses, bugs: { url: 'https://plants.example.com/issues' }, repository: 'soon' }, 'repository, bugs'],
  ])('without the addresses of the project: %j', async (given, names) => {
    const project = await clone(given)
    const hint = 'Set them to those of the project, with https://, and commit that'
    const stderr = `package.json has no real address in: ${names}\n${hint}`
    for (const flags of [[], ['--dry-run']])
      expect(await release(project, [next, ...flags])).toMatchObject({ exitCode: 1, stdout: '', stderr })
  })
})

const executable = executableName(`plants-${target}`, target)
const attached = ['LICENSES.txt', 'SHA256SUMS', executable, `plants-${target}.cdx.json`]
const files = ['NOTES.md', `plant-store-${next}.tgz`, ...attached]
const commands = `git commit --message 'Release ${next}' package.json package-lock.json CHANGELOG.md
git tag --annotate v${next} --message 'plants ${next}'
git push origin HEAD v${next}

# The tag starts .github/workflows/release.yml, which builds again and publishes. Without it, in a CI that npm accepts for --provenance:
npm publish ./release/${next}/plant-store-${next}.tgz --access public --provenance
gh release create v${next} --verify-tag --title ${next} --notes-file release/${next}/NOTES.md \\
  ${attached.map((name) => `release/${next}/${name}`).join(' \\\n  ')}`

const author = Object.fromEntries(
  ['AUTHOR', 'COMMITTER'].flatMap((who) => [
    [`GIT_${who}_NAME`, 'Fern'],
    [`GIT_${who}_EMAIL`, 'fern@plants.example'],
  ]),
)

/** What a release needs in package.json. */
const addresses = {
  repository: { type: 'git', url: 'git+https://code.plants.internal/plant-store.git' },
  homepage: 'https://plants.internal',
  bugs: { url: 'https://code.plants.internal/plant-store/issues' },
}

/** A clean repository of what is here, committed or not, with the packages that are installed here. */
async function clone(given: object = addresses): Promise<string> {
  const project = temporaryFolder()
  const names = (await git(root, 'ls-files', '--cached', '--others', '--exclude-standard'))
    .split('\n')
    .filter((name) => existsSync(join(root, name)))
  for (const name of names) cpSync(join(root, name), join(project, name))
  symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'), 'junction')
  const changelog = read(project, 'CHANGELOG.md').replace('\n## [Unreleased]\n', '$&\n- A change\n')
  writeFileSync(join(project, 'CHANGELOG.md'), changelog)
  const { repository: _, homepage: __, bugs: ___, ...manifest } = JSON.parse(read(project, 'package.json'))
  writeFileSync(join(project, 'package.json'), `${JSON.stringify({ ...manifest, ...given }, undefined, 2)}\n`)
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
