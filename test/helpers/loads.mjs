import { readFileSync } from 'node:fs'
import { basename, join, sep } from 'node:path'
import { rolldown } from 'rolldown'
import config from '../../rolldown.config.mjs'

const root = join(import.meta.dirname, '../..')

export function recordTo(file) {
  return { args: ['--require', join(import.meta.dirname, 'record-loads.cjs')], env: { LOADS_FILE: file } }
}

export async function loadsReader() {
  const packagesOf = await contentOfChunks()
  return (record) => {
    const { files, modules } = JSON.parse(readFileSync(record, 'utf8'))
    const chunks = files.filter((file) => file.startsWith(join(root, 'dist', sep))).map((file) => basename(file))
    const stale = chunks.find((chunk) => !packagesOf.has(chunk))
    if (stale !== undefined) throw new Error(`dist has ${stale}, which the sources do not make. Run: npm run build`)
    const packages = [...chunks.flatMap((chunk) => packagesOf.get(chunk)), ...files.flatMap(packageOf)]
    return { chunks: sorted(chunks.map(nameOf)), packages: sorted(packages), modules: sorted(modules) }
  }
}

/**
 * The packages in each chunk, by its file name. It is bundled once more: the built files do not tell where they come
 * from.
 */
async function contentOfChunks() {
  const bundle = await rolldown({ ...config, cwd: root, logLevel: 'silent' })
  const { output } = await bundle.generate(config.output)
  await bundle.close()
  const chunks = output.filter(({ type }) => type === 'chunk')
  return new Map(chunks.map(({ fileName, moduleIds }) => [fileName, moduleIds.flatMap(packageOf)]))
}

/** The package that a path leads into, if any. */
function packageOf(path) {
  const [, name] = /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(path) ?? []
  return name === undefined ? [] : [name.replace('\\', '/')]
}

function nameOf(chunk) {
  return chunk.replace(/(-[\w-]{8})?\.js$/, '')
}

function sorted(values) {
  return [...new Set(values)].sort()
}
