// Runs all benchmarks, and rewrites the tables of docs/benchmarks.md, its charts, and the figures they are made from:
// npm run bench [-- FLAG...]
//   --only start,serve   some of start, serve, import, postgres, growth; the figures of the others stay
//   --quick              the smallest sizes, to try all of it: writes to a temporary folder, and prints which
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import packageJson from '../package.json' with { type: 'json' }
import { killAll, track } from './children.mjs'
import { print } from './figures.mjs'
import { render } from './page.mjs'
import { end, temporaryFolder } from './place.mjs'

/** The flags of each: so many that all together take about 20 minutes on two processors, and as few as there can be. */
const benches = {
  start: { full: '--runs 30 --matrix', quick: '--runs 1' },
  serve: { full: '--reads', quick: '--reads --rounds 1 --seconds 1' },
  import: { full: '', quick: '--rounds 1 --rows 1000' },
  postgres: { full: '--seconds 3', quick: '--rounds 1 --seconds 1 --rows 1000' },
  growth: { full: '--plants 10000,1000000,10000000', quick: '--plants 100,1000 --seconds 1' },
}
const { values: flags } = parseArgs({
  options: {
    only: { type: 'string', default: Object.keys(benches).join() },
    quick: { type: 'boolean', default: false },
  },
})
const names = flags.only.split(',')
if (!names.every((name) => Object.hasOwn(benches, name)))
  end(2, `--only must be some of ${Object.keys(benches).join()}`)

const root = join(import.meta.dirname, '..')
const out = flags.quick ? mkdtempSync(join(tmpdir(), 'plants-bench-page-')) : root
const [page, stored] = ['docs/benchmarks.md', 'bench/figures.json']
if (flags.quick) for (const path of [page, stored]) cpSync(join(root, path), join(out, path))
const file = join(temporaryFolder(tmpdir(), killAll), 'figures')

const begin = performance.now()
const warnings = []
let isWhole = names.length === Object.keys(benches).length // then no versions of an earlier run stay
for (const [index, name] of names.entries()) {
  const args = benches[name][flags.quick ? 'quick' : 'full'].split(' ').filter(Boolean)
  print(`\n${index + 1} of ${names.length}, after ${minutes()} min: npm run bench:${name} -- ${args.join(' ')}\n`)
  await take(name, args)
}
print(`\n${minutes()} min. ${join(out, page)}, its charts and ${join(out, stored)} are written`)
print(
  warnings.length > 0 ? `Look at:\n${warnings.join('\n')}` : 'Nothing else used the machine, and all limits are met',
)

/** Runs a benchmark, and writes what it found. */
async function take(name, args) {
  const options = { env: { ...process.env, BENCH_FIGURES: file }, stdio: ['ignore', 'pipe', 'inherit'] }
  const child = track(spawn(process.execPath, [join(import.meta.dirname, `${name}.mjs`), ...args], options))
  const exited = once(child, 'exit')
  for await (const line of createInterface(child.stdout)) {
    print(line)
    if (/BUSY|NOT MET|NOT FLAT|MISSED|left out/.test(line)) warnings.push(`${name}: ${line}`)
  }
  const [code, signal] = await exited
  if (code !== 0) end(1, `npm run bench:${name} ended with ${code ?? signal}; the figures of those before are written`)
  const noted = readFileSync(file, 'utf8').trim().split('\n')
  rmSync(file)
  write(noted.map((line) => JSON.parse(line)))
}

function write(noted) {
  const all = JSON.parse(readFileSync(join(out, stored), 'utf8'))
  if (isWhole) all.versions = {}
  isWhole = false
  for (const { name, figures } of noted) all[name] = { ...all[name], ...figures }
  all.versions['plant-store'] = packageJson.version
  all.machine.date = new Date().toISOString().slice(0, 10)
  const { page: text, charts } = render(readFileSync(join(out, page), 'utf8'), all)
  writeFileSync(join(out, stored), `${JSON.stringify(all, undefined, 2)}\n`)
  writeFileSync(join(out, page), text)
  for (const [chart, svg] of Object.entries(charts)) writeFileSync(join(out, 'docs', chart), svg)
}

function minutes() {
  return ((performance.now() - begin) / 60_000).toFixed(1)
}
