// Checks of the program on Windows, or under wine: node checks.mjs BIN FOLDER [WORDS]. Each runs it as a process of its own, with
// pipes of Windows. Prints a line for each check; the exit code is 1 when one failed.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

const [bin, folder, ...words] = process.argv.slice(2)
const home = join(folder, 'home')
const [local, roaming] = ['Local', 'Roaming'].map((name) => join(home, 'AppData', name))
const [data, config] = [join(local, 'plants/Data'), join(roaming, 'plants/Config')]
for (const path of [local, roaming]) mkdirSync(path, { recursive: true })
process.chdir(folder)
const base = {
  ...process.env,
  LOCALAPPDATA: local,
  APPDATA: roaming,
  USERPROFILE: home,
  NODE_NO_WARNINGS: '1',
}

const wordsOf = (args) => (typeof args === 'string' ? args.split(' ') : args)

/** @param {import('node:child_process').SpawnSyncOptions} [options] */
function plants(args, options = {}) {
  const words = [bin, ...wordsOf(args)]
  const { status, stdout, stderr } = spawnSync(process.execPath, words, {
    ...{ input: '', ...options, env: { ...base, ...options.env } },
    ...{ encoding: 'utf8', timeout: 300_000 },
  })
  return { code: status, out: stdout, err: stderr }
}

/** Returns stdout. */
function ok(args, options) {
  const { code, out, err } = plants(args, options)
  assert.equal(code, 0, `plants ${wordsOf(args).join(' ')}: exit code ${code}: ${err}${out}`.trim())
  return out
}

function fails(args, code, message, options) {
  const { out, err, ...result } = plants(args, options)
  assert.deepEqual([result.code, out], [code, ''], err)
  assert(err.includes(message), `${err} does not contain ${message}`)
}

/** @param {'pipe' | 'ignore'} [stderr] */
function start(args, env = {}, stderr = 'pipe') {
  const child = spawn(process.execPath, [bin, ...wordsOf(args)], {
    env: { ...base, ...env },
    stdio: ['ignore', 'pipe', stderr],
  })
  const result = { out: '', err: '' }
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    result.out += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    result.err += text
  })
  const ended = new Promise((resolve) => child.on('close', (code) => resolve({ ...result, code })))
  return { child, result, ended }
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 20))

/** A new store with plants of these ids, as it is given to `--store`. */
function storeWith(...ids) {
  stores += 1
  const store = `.\\store${stores}.db`
  ok(['import', '-', '--store', store], {
    input: ids.map((id) => `{"id":${id},"name":"Fern ${id}"}\n`).join(''),
  })
  return store
}

let stores = 0

/** Waits for what a process does, of which no event comes here. */
async function until(what, is, process) {
  for (const end = Date.now() + 300_000; !is(); await pause()) {
    assert(Date.now() < end, `not within five minutes: ${what}`)
    assert(process?.child.exitCode == null, `the process ended without: ${what}`)
  }
}

async function serve(store) {
  // Its log goes to nobody: spawnSync keeps this process from reading it, and a full pipe would stop the service.
  const args = ['serve', '--store', store, '--port', '0', '--allow', 'create,read,update,delete']
  const service = start(args, { PLANTS_SERVE_TOKEN: token }, 'ignore')
  await until('an address', () => service.result.out.includes('\n'), service)
  return { ...service, address: service.result.out.trim() }
}

async function end({ child, ended }) {
  child.kill()
  await ended
}

const token = 'a-token-that-is-long-enough'

/** What is left of a file that was being written. */
const remains = (path = '.') =>
  readdirSync(path).filter((name) => /^\.plants-|\.new$|\.tmp$/.test(name))

const many = (count) =>
  `id,name\r\n${Array.from({ length: count }, (_, at) => `${at + 1},plant ${at}\r\n`).join('')}`

const checks = {
  'a drive letter is no scheme of a URL': () => {
    const paths = [
      join(folder, 'd1.db'),
      join(folder, 'd2').replaceAll('\\', '/'),
      `sqlite:${join(folder, 'd3.db')}`,
    ]
    for (const store of paths) ok(['create', '--store', store, '--id', '1', '--name', 'x'])
    assert.deepEqual(['d1.db', 'd2', 'd3.db'].map(existsSync), [true, true, true])
  },
  'a path has spaces, umlauts, % and #': () => {
    const directory = 'two words ß'
    mkdirSync(directory)
    ok(['create', '--store', `.\\${directory}\\50%25 #1.db`, '--id', '1', '--name', 'x'])
    assert.equal(ok(['count', '--store', join(folder, directory, '50%25 #1.db')]), '1\n')
    assert.deepEqual(readdirSync(directory), ['50%25 #1.db'])
  },
  'a store has a UNC path': () => {
    // A share of wine, or that of administrators.
    const unc = ['\\\\localhost\\share', folder.replace(/^(.):/, '\\\\localhost\\$1$')].find(
      existsSync,
    )
    if (unc === undefined) return 'there is no share'
    const store = join(unc, 'unc 1%.db')
    rmSync(store, { force: true })
    ok(['create', '--store', store, '--id', '1', '--name', 'Fern'])
    ok(['create', '--store', store, '--id', '2', '--name', 'Moss'])
    ok(['backup', join(unc, 'unc.bak'), '--store', store])
    assert.equal(ok(['count', '--store', join(unc, 'unc.bak')]), '2\n')
  },
  'the default store is in LOCALAPPDATA, and the settings are in APPDATA': () => {
    ok('create --id next --name Moss')
    ok('config set timeout 1m')
    assert(existsSync(join(data, 'plants.db')))
    assert.equal(JSON.parse(readFileSync(join(config, 'settings.json'), 'utf8')).timeout, '1m')
    ok('config unset timeout')
  },
  'NUL is the null device': () => {
    const store = storeWith(1)
    for (const name of ['NUL', 'nul', '\\\\.\\NUL']) {
      ok(`export ${name} --store ${store} --yes`)
      ok(`import ${name} --store ${store} --rejects ${name}`)
    }
    fails('create --store sqlite:NUL --id 1 --name x', 4, 'is a device')
    assert.deepEqual(
      readdirSync('.').filter((name) => /nul/i.test(name)),
      [],
    )
  },
  'an import reads a pipe, a file as stdin, and nothing': () => {
    ok('import --store .\\piped.db', { input: 'id,name\r\n7,x\r\n' })
    ok('import - --store .\\piped.db', { input: '{"id":8,"name":"y"}\r\n' })
    writeFileSync('stdin.csv', 'id,name\r\n9,z\r\n')
    const fd = openSync('stdin.csv', 'r')
    ok('import --store .\\piped.db', { stdio: [fd, 'pipe', 'pipe'] })
    closeSync(fd)
    assert.equal(ok('count --store .\\piped.db'), '3\n')
    fails('import --store .\\piped.db', 2, 'import needs a file', {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  },
  'an export replaces a file, unless a program has it open': () => {
    const store = storeWith(1, 2, 3)
    ok(`export e.csv --store ${store} --limit 1`)
    fails(`export e.csv --store ${store}`, 2, 'already exists')
    ok(`export E.CSV --store ${store} --yes --limit 2`)
    const before = readFileSync('e.csv', 'utf8')
    const fd = openSync('e.csv', 'r')
    const { code, err } = plants(`export e.csv --store ${store} --yes`)
    closeSync(fd)
    // A newer Windows replaces it all the same.
    if (code !== 0) assert.deepEqual([code, readFileSync('e.csv', 'utf8')], [74, before], err)
    assert.deepEqual(remains(), [])
  },
  'the same file in another case is known': () => {
    const store = storeWith(1)
    const name = store.slice(2)
    for (const other of [name.toUpperCase(), `${name}-WAL`, join(folder, name.toUpperCase())]) {
      fails(['export', other, '--store', store, '--yes'], 2, 'is a file of the store')
      fails(['backup', other, '--store', store], 2, 'is a file of the store')
    }
    writeFileSync('input.csv', 'id,name\r\n2,Moss\r\n')
    fails(`import input.csv --rejects INPUT.CSV --store ${store}`, 2, '--rejects names the input')
    assert.equal(ok(`count --store ${store.toUpperCase()}`), '1\n')
  },
  'a backup is made, replaced and restored': () => {
    const store = storeWith(1, 2)
    for (const command of ['backup b.db', 'backup B.DB', 'delete 1 --yes', 'restore b.db --yes'])
      ok(`${command} --store ${store}`)
    assert.equal(ok(`count --store ${store}`), '2\n')
    const kept = readdirSync('.').filter((name) =>
      name.startsWith(`${store.slice(2)}.before-restore-`),
    )
    assert.deepEqual([kept.length, ok(`count --store .\\${kept[0]}`)], [1, '1\n'])
    const fd = openSync('b.db', 'r')
    const { code, err } = plants(`backup b.db --store ${store}`)
    closeSync(fd)
    if (code !== 0) assert.match(err, /another program has it open|permission denied/)
    assert.deepEqual(remains(), [])
  },
  'six processes change the settings at once': async () => {
    const runs = [1, 2, 3, 4, 5, 6].map(
      (n) => start(['stores', 'add', `s${n}`, join(folder, `s${n}.db`)]).ended,
    )
    const all = await Promise.all(runs)
    assert.deepEqual(
      all.filter(({ code }) => code !== 0),
      [],
    )
    assert.equal(ok('stores list').trim().split('\n').length, 7)
    assert.deepEqual(remains(config), [])
  },
  'a process that is killed leaves no lock': async () => {
    const held = join(config, 'settings.json.lock')
    const lock = `
      const { DatabaseSync } = require(${JSON.stringify(join(bin, '../../../@photostructure/sqlite'))})
      const db = new DatabaseSync(${JSON.stringify(held)})
      db.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE')
      process.stdout.write('locked')
      setInterval(() => db, 1000)`
    const holder = spawn(process.execPath, ['-e', lock], { stdio: ['ignore', 'pipe', 'inherit'] })
    await new Promise((resolve) => holder.stdout.once('data', resolve))
    fails('config set timeout 1m --timeout 100ms', 4, 'Another process has held')
    holder.kill()
    await new Promise((resolve) => holder.once('close', resolve))
    ok('config set timeout 1m')
    ok('config unset timeout')
  },
  'an import that was killed goes on, also from a directory in another case': async () => {
    const count = 150_000
    writeFileSync('many.csv', `${many(count)}x,no id\r\n`)
    const command = 'import many.csv --store .\\killed.db --rejects killed.csv'
    const first = start(command)
    await until('a chunk', () => Number(plants('count --store .\\killed.db').out) > 0, first)
    first.child.kill()
    await first.ended
    const stored = Number(ok('count --store .\\killed.db'))
    assert(stored > 0 && stored < count, `${stored} were stored`)
    const cwd = folder.replace(/^./, (letter) =>
      letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
    )
    const { code, err } = plants(command.replace('many', 'MANY'), { cwd })
    assert.deepEqual([code, err.includes('Resuming an interrupted import')], [6, true], err)
    assert.equal(ok('count --store .\\killed.db'), `${count}\n`)
    assert.equal(readFileSync('killed.csv', 'utf8').split('\n').length, 3)
    assert.deepEqual(remains(), [])
  },
  'a reader that closes the pipe is no error': async () => {
    writeFileSync('long.csv', many(20_000))
    ok('import long.csv --store .\\long.db')
    const { child, ended } = start('list --store .\\long.db')
    child.stdout?.once('data', () => child.stdout?.destroy())
    const { code, err } = await ended
    assert.deepEqual([code, err], [0, ''])
  },
  'a service keeps umlauts and emoji in plants that outlive its process': async () => {
    const plant = { id: 5, name: 'Ärger 植物 \u{1f33f}', tag: 'größe' }
    const line = `${JSON.stringify(plant)}\n`
    const service = await serve('.\\served.db')
    const env = { PLANTS_TOKEN: token, PLANTS_STORE: service.address }
    try {
      ok(['create', '--id', '5', '--name', plant.name], { env })
      ok(['update', '5', '--tag', plant.tag], { env })
      fails('create --id 5 --name Moos', 1, 'already exists', { env })
      assert.equal(ok('list', { env }), line)
    } finally {
      await end(service)
    }
    assert.equal(ok('get 5 --store .\\served.db'), line)
    fails('serve --store .\\served.db --socket x.sock', 2, '--socket is not supported on Windows')
  },
  'a token command is run': async () => {
    const service = await serve(storeWith(1))
    try {
      writeFileSync('print-token.cjs', `process.stdout.write(${JSON.stringify(token)})`)
      const command = [process.execPath, join(folder, 'print-token.cjs')].map((path) =>
        path.replaceAll(' ', '\\ '),
      )
      ok(['stores', 'add', 'garden', service.address, '--token-command', command.join(' ')])
      assert.equal(ok('count --store garden'), '1\n')
    } finally {
      await end(service)
    }
  },
  'PowerShell completes': () => {
    writeFileSync('complete.ps1', ok('completion powershell'))
    const lines = ['crea', 'list --outp', 'list --output js', 'list --output=js', 'stores ']
    lines.push('list --store gar')
    writeFileSync(
      'try.ps1',
      `Invoke-Expression (Get-Content -Raw complete.ps1)
foreach ($words in ${lines.map((line) => `'${line}'`)}) {
  $line = "plants $words"
  (TabExpansion2 $line $line.Length).CompletionMatches[0].CompletionText
}`,
    )
    const out = powershell('./try.ps1')
    if (out === undefined) return 'there is no PowerShell'
    const completed = ['create', '--output', 'json', '--output=json', 'add', 'garden']
    assert.deepEqual(out.split(/\r?\n/), completed)
  },
}

/** Runs a command line in PowerShell; undefined where there is none: wine has one that does nothing. */
function powershell(command) {
  const env = { ...base, Path: `${join(bin, '../../../.bin')};${process.env.Path}` }
  for (const name of ['pwsh', 'powershell']) {
    const args = ['-NoProfile', '-ExecutionPolicy', 'Bypass', '-Command', command]
    const { stdout } = spawnSync(name, args, { encoding: 'utf8', env })
    if (stdout?.trim()) return stdout.trim()
  }
  return undefined
}

let failed = 0
for (const [name, check] of Object.entries(checks).filter(([name]) =>
  name.includes(words.join(' ')),
)) {
  const begin = Date.now()
  let [verdict, why] = ['ok', '']
  try {
    const missing = await check()
    if (missing) [verdict, why] = ['part', `: ${missing}`]
  } catch (error) {
    failed += 1
    ;[verdict, why] = ['FAIL', `\n    ${error.message.split('\n').slice(0, 12).join('\n    ')}`]
  }
  writeSync(
    1,
    `${verdict.padEnd(4)} ${name} (${((Date.now() - begin) / 1000).toFixed(1)} s)${why}\n`,
  )
}
process.exitCode = failed > 0 ? 1 : 0
