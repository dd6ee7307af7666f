// Builds the program as one file for each platform that is asked for, with what tells what is in it:
// npm run build:binary [-- --target NAME …] [--out FOLDER]
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { BuildError } from './build/build-error.mjs'
import { bunVersion, fetchedBun } from './build/bun.mjs'
import { noticesOf } from './build/bundled-packages.mjs'
import { bundle, compile } from './build/compile.mjs'
import { executableName, hostTarget, targets } from './build/targets.mjs'

const root = join(import.meta.dirname, '..')
const usage = 'npm run build:binary -- [--target NAME|all]... [--out FOLDER]'

try {
  await main(parse(process.argv.slice(2)))
} catch (error) {
  if (!(error instanceof BuildError)) throw error
  process.stderr.write(`${error.message}\n${error.hint}\n`)
  process.exitCode = error.exitCode
}

function parse(args) {
  const options = {
    target: { type: 'string', multiple: true },
    out: { type: 'string' },
    help: { type: 'boolean' },
  }
  try {
    const { values } = parseArgs({ args, options })
    const { target: names = [hostTarget()] } = values
    const asked = [
      ...new Set(names.flatMap((name) => (name === 'all' ? Object.keys(targets) : name))),
    ]
    const unknown = asked.find((target) => !Object.hasOwn(targets, target))
    if (unknown !== undefined)
      throw new BuildError(
        `There is no target ${unknown}`,
        `The targets are ${Object.keys(targets).join(', ')}`,
        2,
      )
    return { asked, out: resolve(root, values.out ?? 'release'), isHelp: values.help ?? false }
  } catch (error) {
    if (!error.code?.startsWith('ERR_PARSE_ARGS_')) throw error
    throw new BuildError(error.message, usageWithTargets(), 2)
  }
}

function usageWithTargets() {
  const names = Object.keys(targets).join(', ')
  return `${usage}\nThe targets are ${names}\nThose for musl need libstdc++: apk add libstdc++`
}

async function main({ asked, out, isHelp }) {
  if (isHelp) return process.stdout.write(`${usageWithTargets()}\n`)
  const host = hostTarget()
  const runtimes = new Map(
    asked.map((target) => [target, target === host ? undefined : fetchedBun(target)]),
  )
  empty(out)
  const folder = join(out, '.bundle')
  try {
    const packages = await bundle(folder)
    for (const [target, bun] of runtimes) {
      const outfile = join(out, fileOf(target))
      compile(folder, outfile, { host, target, bun })
      process.stdout.write(`${outfile}\n`)
    }
    writeNotices(out, packages)
    writeChecksums(out)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Takes away what an earlier build has left, and nothing else: the folder may be anybody's. */
function empty(folder) {
  mkdirSync(folder, { recursive: true })
  for (const name of readdirSync(folder).filter(isOurs)) rmSync(join(folder, name))
}

function isOurs(name) {
  return ['SHA256SUMS', 'LICENSES.txt', ...Object.keys(targets).map(fileOf)].includes(name)
}

function fileOf(target) {
  return executableName(`plants-${target}`, target)
}

function writeNotices(out, packages) {
  const bun = readFileSync(join(import.meta.dirname, 'build/bun-notice.txt'), 'utf8').replace(
    'VERSION',
    bunVersion,
  )
  const own = readFileSync(join(root, 'LICENSE'), 'utf8')
  writeFileSync(
    join(out, 'LICENSES.txt'),
    `plant-store\n\n${own}\n${bun}\nIt contains code of these packages.\n\n${noticesOf(packages)}`,
  )
}

/** In the form that `sha256sum --check` reads. */
function writeChecksums(out) {
  const names = readdirSync(out).filter((name) => isOurs(name) && name !== 'SHA256SUMS')
  const lines = names.toSorted().map((name) => `${sha256(join(out, name))}  ${name}\n`)
  writeFileSync(join(out, 'SHA256SUMS'), lines.join(''))
}

function sha256(path) {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}
