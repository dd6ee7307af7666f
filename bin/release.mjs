// Makes a release, but publishes nothing: sets the version, builds the npm package and the executables, and prints the
// commands that publish them. The working tree changes only when all is built, because everything happens in a
// temporary copy of it.
//   npm run release -- VERSION [--dry-run] [--target NAME]...
//   npm run release -- --tag vVERSION: builds a version again that is tagged, as .github/workflows/release.yml does
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { parseArgs } from 'node:util'
import semver from 'semver'
import { BuildError } from './build/build-error.mjs'
import { hostTarget, targets } from './build/targets.mjs'

const root = join(import.meta.dirname, '..')
const usage =
  'npm run release -- VERSION [--dry-run] [--target NAME]...\nnpm run release -- --tag vVERSION [--target NAME]...'
const changed = ['package.json', 'package-lock.json', 'CHANGELOG.md']

try {
  main(parse(process.argv.slice(2)))
} catch (error) {
  if (!(error instanceof BuildError)) throw error
  process.stderr.write(`${error.message}\n${error.hint}\n`)
  process.exitCode = error.exitCode
}

function parse(args) {
  const options = {
    'dry-run': { type: 'boolean', default: false },
    tag: { type: 'string' },
    target: { type: 'string', multiple: true },
  }
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
    const { tag, 'dry-run': isDryRun, target = isDryRun ? [hostTarget()] : Object.keys(targets) } = values
    const versions = tag === undefined ? positionals : [...positionals, tag.replace(/^v/, '')]
    if (versions.length !== 1) throw new BuildError('One version is needed', usage, 2)
    const [version] = versions
    if (!/^\d+\.\d+\.\d+$/.test(version) || !semver.valid(version))
      throw new BuildError(`A version is like 1.0.0, not ${version}`, usage, 2)
    return { version, isTagged: tag !== undefined, isDryRun, asked: target }
  } catch (error) {
    if (!error.code?.startsWith('ERR_PARSE_ARGS_')) throw error
    throw new BuildError(error.message, usage, 2)
  }
}

function main({ version, isTagged, isDryRun, asked }) {
  checkTree()
  checkVersion(version, isTagged)
  checkAddresses()
  const changelog = released(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version, isTagged)
  const copy = mkdtempSync(join(tmpdir(), 'plants-release-'))
  try {
    copyTree(copy)
    writeFileSync(join(copy, 'CHANGELOG.md'), changelog)
    if (!isTagged) run('npm', ['version', version, '--no-git-tag-version'], copy)
    const out = posix.join('release', version)
    build(copy, { out, asked })
    writeFileSync(join(copy, out, 'NOTES.md'), `${notesOf(changelog, version)}\n`)
    const files = readdirSync(join(copy, out)).map((name) => posix.join(out, name))
    for (const file of files) process.stderr.write(`${megabytes(join(copy, file))} MB  ${file}\n`)
    if (!isDryRun) takeOver(copy, [...(isTagged ? [] : changed), out])
    if (!isTagged) process.stdout.write(commands(version, files))
    if (isDryRun) process.stderr.write('Dry run: nothing was changed, and these files are gone\n')
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

function checkTree() {
  const status = run('git', ['status', '--porcelain'], root)
  if (status !== '') throw new BuildError(`The working tree has changes:\n${status.trimEnd()}`, 'Commit or remove them')
}

function checkVersion(version, isTagged) {
  const current = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version
  if (isTagged && version !== current)
    throw new BuildError(
      `The tag is of version ${version}, but package.json has ${current}`,
      `Tag the commit that sets version ${version}`,
    )
  if (!isTagged && !semver.gt(version, current))
    throw new BuildError(
      `Version ${version} is not greater than ${current}`,
      'Choose a greater one, by the rules of CHANGELOG.md',
    )
}

/** npm shows these addresses, and compares `repository` with where a package was built. */
function checkAddresses() {
  const { repository, homepage, bugs } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const addresses = { repository: repository?.url, homepage, bugs: bugs?.url }
  const missing = Object.keys(addresses).filter((name) => !isReal(addresses[name]))
  if (missing.length > 0)
    throw new BuildError(
      `package.json has no real address in: ${missing.join(', ')}`,
      'Set them to those of the project, with https://, and commit that',
    )
}

/** Whether it is an HTTPS address whose host is not reserved for examples and tests (RFC 2606). */
function isReal(address = '') {
  const reserved = /(^|\.)(example(\.com|\.net|\.org)?|invalid|test|localhost)$/
  const url = address.replace(/^git\+/, '')
  return /^https:\/\/[^/]/.test(url) && !reserved.test(new URL(url).hostname)
}

/** The changelog with a section of this version: its own, or what is under [Unreleased], from today. */
function released(changelog, version, isTagged) {
  if (notesOf(changelog, version) !== undefined) return changelog
  const hint = `Describe the version in CHANGELOG.md, under ## [Unreleased] or ## [${version}] - YYYY-MM-DD`
  if (isTagged || !notesOf(changelog, 'Unreleased'))
    throw new BuildError(`CHANGELOG.md has no entries for version ${version}`, hint)
  const today = new Date().toISOString().slice(0, 10)
  return changelog.replace(/^## \[Unreleased\]$/m, `## [Unreleased]\n\n## [${version}] - ${today}`)
}

/** The text of a section of the changelog; undefined when there is none. */
function notesOf(changelog, name) {
  const sections = changelog.split(/^## /m)
  const section = sections.find(
    (text) => text.startsWith(`[${name}]\n`) || RegExp(`^\\[${name}\\] - \\d{4}-\\d\\d-\\d\\d\n`).test(text),
  )
  return section?.slice(section.indexOf('\n')).trim()
}

/** Copies what is committed, to build it with the packages that are installed. */
function copyTree(folder) {
  run('git', ['checkout-index', '--all', `--prefix=${folder}/`], root)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction')
}

function build(folder, { out, asked }) {
  mkdirSync(join(folder, out), { recursive: true })
  run(
    'npm',
    ['run', '--silent', 'build:binary', '--', '--out', out, ...asked.flatMap((name) => ['--target', name])],
    folder,
  )
  run('npm', ['pack', '--silent', '--pack-destination', out], folder)
}

function takeOver(copy, names) {
  for (const name of names) {
    rmSync(join(root, name), { recursive: true, force: true })
    cpSync(join(copy, name), join(root, name), { recursive: true })
  }
}

function commands(version, files) {
  const archive = files.find((file) => file.endsWith('.tgz'))
  const notes = files.find((file) => file.endsWith('.md'))
  const attached = files.filter((file) => file !== archive && file !== notes)
  return `git commit --message 'Release ${version}' ${changed.join(' ')}
git tag --annotate v${version} --message 'plants ${version}'
git push origin HEAD v${version}

# The tag starts .github/workflows/release.yml, which builds again and publishes. Without it, in a CI that npm accepts for --provenance:
npm publish ./${archive} --access public --provenance
gh release create v${version} --verify-tag --title ${version} --notes-file ${notes} \\
  ${attached.join(' \\\n  ')}
`
}

function run(command, args, cwd) {
  // Where npm is no executable. No argument needs quoting.
  const shell = process.platform === 'win32' && command === 'npm'
  try {
    return execFileSync(command, args, { cwd, encoding: 'utf8', shell, stdio: ['ignore', 'pipe', 'inherit'] })
  } catch (error) {
    if (error.status === undefined) throw error
    throw new BuildError(`${command} ${args.join(' ')} failed with ${error.status}`, 'Nothing was changed')
  }
}

function megabytes(path) {
  return (statSync(path).size / 1e6).toFixed(1).padStart(6)
}
