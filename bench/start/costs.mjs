import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'rolldown'
import config from '../../rolldown.config.mjs'
import { median } from '../figures.mjs'

/** Inside of node_modules, where the driver finds its package. */
const cache = join(import.meta.dirname, '../../node_modules/.cache/bench/packages')

// The clock is a module as well, which must be there before it is asked.
const timer =
  'performance.now(); const start = performance.now(); require(process.argv[1]); console.log(performance.now() - start)'

/**
 * Finds out what it takes to load packages, each bundled as the program is, but alone, in a process of its own.
 *
 * @param parts by their names: what is imported, and what of it is called besides
 * @returns by the same names: the median in ms, and the size of the bundle in KB
 */
export async function costsOf(parts, { node, env, runs, warmUps }) {
  const bundles = []
  for (const [name, part] of Object.entries(parts)) bundles.push({ name, times: [], ...(await bundle(name, part)) })
  for (let run = -warmUps; run < runs; run += 1) {
    for (const { path, times } of bundles) {
      const time = Number(execFileSync(node, ['-e', timer, path], { env }))
      if (run >= 0) times.push(time)
    }
  }
  return Object.fromEntries(bundles.map(({ name, times, size }) => [name, { time: median(times), size }]))
}

async function bundle(name, { imports, call }) {
  const folder = join(cache, name.replaceAll(/\W/g, '-'))
  const input = join(folder, 'all.mjs')
  mkdirSync(folder, { recursive: true })
  // Kept whole: nobody knows what of a global is used.
  const lines = imports.map(
    (path, index) =>
      `import * as part${index} from ${JSON.stringify(path)}\n(globalThis.parts ??= []).push(part${index})`,
  )
  writeFileSync(input, [...lines, call ? `part0.${call}()` : ''].join('\n'))
  const { external, platform } = config
  const plugins = config.plugins.filter(({ resolveId }) => resolveId) // not those that write other files
  const dir = join(folder, 'out')
  const output = { dir, cleanDir: true, format: 'cjs', minify: true }
  await build({ input, external, plugins, platform, logLevel: 'silent', output })
  const size =
    readdirSync(dir)
      .filter((file) => file.endsWith('.js'))
      .reduce((sum, file) => sum + statSync(join(dir, file)).size, 0) / 1000
  return { path: join(dir, 'all.js'), size }
}
