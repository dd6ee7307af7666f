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

function plants(args, { input = '', env = {}, stdio = 'pipe', cwd } = {}) {
  const options = {
    input,
    cwd,
    env: { ...base, ...env },
    stdio,
    encoding: 'utf8',
    timeout: 300_000,
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...wordsOf(args)], options)
  return { code: status, out: stdout, err: stderr }
}

/** Returns stdout. */
function ok(args, options) {
  const { code, out, err } = plants(args, options)
  assert.equal(code, 0, `plants ${wordsOf(args).join(' ')}: exit code ${code}: ${err}${out}`.trim())
  return out
}

function fails(args, code, message, options) {
  const result = plants(args, options)
  assert.deepEqual([result.code, result.out], [code, ''], result.err)
  if (message instanceof RegExp) assert.match(result.err, message)
  else assert(result.err.includes(message), `${result.err} does not contain ${message}`)
  return result.err
}

function start(args, env = {}, stderr = 'pipe') {
  const options = { env: { ...base, ...env }, stdio: ['ignore', 'pipe', stderr] }
  const child = spawn(process.execPath, [bin, ...wordsOf(args)], options)
  const result = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text) => {
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
async function until(what, is, { child } = {}) {
  for (const end = Date.now() + 300_000; !is(); await pause()) {
    assert(Date.now() < end, `not within five minutes: ${what}`)
    assert(child?.exitCode == null, `the process ended without: ${what}`)
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

const hasOwnSqlite = /^(?:24\.(?:1[5-9]|[2-9]\d)|2[5-9])\./.test(process.versions.node)

const leftIn = (journals) => readdirSync(journals).filter((name) => !name.endsWith('.lock'))

/** What is left of a file that was being written. */
const remains = (path = '.') =>
  readdirSync(path).filter((name) => /^\.plants-|\.new$|\.tmp$/.test(name))

const many = (count) =>
  `id,name\r\n${Array.from({ length: count }, (_, at) => `${at + 1},plant ${at}\r\n`).join('')}`

const idsIn = (out) =>
  out
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line).id)

const checks = {
  'the version says the platform': () => {
    const [runtime] = ok('doctor --output ndjson').split('\n')
    assert.ok(runtime.includes(`on node ${process.versions.node}, win32 ${process.arch}`))
  },
  'a store is created at a path with a backslash': () => {
    const { code, out, err } = plants('create --store .\\a.db --id 1 --name Fern')
    assert.deepEqual(
      [code, out, err],
      [0, '{"name":"Fern"}\n', `plants: Created store ${join(folder, 'a.db')}\n`],
    )
  },
  'umlauts and emoji are kept': () => {
    const plant = { id: 2, name: 'Ärger 植物 \u{1f33f}', tag: 'größe' }
    ok(['create', '--store', '.\\text.db', '--id', '2', '--name', plant.name, '--tag', plant.tag])
    assert.equal(ok('get 2 --store .\\text.db'), `${JSON.stringify(plant)}\n`)
  },
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
  'a directory in place of the default store is reported': () => {
    const env = { PLANTS_DATA_DIR: join(folder, 'taken') }
    mkdirSync(join(folder, 'taken/plants.db'), { recursive: true })
    for (const command of ['list', 'create --id 1 --name x'])
      fails(command, 4, 'it is a directory', { env })
  },
  'a variable has any case': () => {
    assert.equal(ok('count', { env: { plants_store: storeWith(1, 2) } }), '2\n')
    assert.equal(ok('count', { env: { Plants_Data_Dir: folder } }), '0\n')
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
  'a plant is read from a pipe': () => {
    ok('create --store .\\pipe.db', { input: '\uFEFF{"id":3,\r\n"name":"Piped ü"}\r\n' })
    assert.equal(ok('get 3 --store .\\pipe.db'), '{"id":3,"name":"Piped ü"}\n')
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
  'ids and plants are read from a pipe': () => {
    const store = storeWith(1, 2, 3)
    assert.deepEqual(idsIn(ok(`get - --store ${store}`, { input: '1\r\n3\r\n' })), [1, 3])
    ok(`delete - --yes --store ${store}`, { input: ok(`get 3 --store ${store}`) })
    assert.deepEqual(idsIn(ok(`list --store ${store}`)), [1, 2])
  },
  'a CSV file with CR LF is imported, and its rejected records are written': () => {
    writeFileSync(
      'crlf.csv',
      'id,name,tag\r\n10,Rose,"a,b"\r\n11,"two\r\nlines",\r\n12,März,t\r\nx,Ivy,\r\n',
    )
    const { code, out } = plants('import crlf.csv --store .\\csv.db --rejects bad.csv')
    assert.deepEqual([code, JSON.parse(out).created], [6, 3])
    assert.equal(
      ok('list --store .\\csv.db -o csv'),
      'id,name,tag\n10,Rose,"a,b"\n11,"two\r\nlines",\n12,März,t\n',
    )
    const rejected = readFileSync('bad.csv', 'utf8')
    assert.match(rejected, /^\uFEFFrejected_line,rejected_reason,id,name,tag\n6,/)
    writeFileSync('good.csv', rejected.replace(/,x,Ivy/, ',13,Ivy'))
    assert.equal(JSON.parse(ok('import good.csv --store .\\csv.db')).created, 1)
  },
  'UTF-16 and windows-1252 are imported': () => {
    writeFileSync('u16.csv', '\ufeffid;name\r\n21;Ärger\r\n', 'utf16le')
    writeFileSync('ansi.csv', 'id;name\r\n22;Ärger\r\n', 'latin1')
    ok('import u16.csv --store .\\enc.db')
    ok('import ansi.csv --store .\\enc.db --encoding windows-1252')
    assert.equal(ok('list --store .\\enc.db -o csv'), 'id,name,tag\n21,Ärger,\n22,Ärger,\n')
  },
  'CSV, workbooks and what is compressed come back from an export': () => {
    const store = storeWith(1, 2)
    ok(['update', '1', '--name', 'two\r\nlines, "quoted"', '--tag', 'März', '--store', store])
    const all = ok(`list --store ${store}`)
    for (const name of ['list.csv', 'list.tsv', 'list.xlsx', 'list.ndjson.gz']) {
      ok(`export ${name} --store ${store}`)
      ok(`import ${name} --store .\\${name}.db`)
      assert.equal(ok(`list --store .\\${name}.db`), all, name)
    }
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
      fails(['export', other, '--store', store, '--yes'], 2, 'is the store itself')
      fails(['backup', other, '--store', store], 2, 'is the store itself, or belongs to it')
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
  'a plant is updated and deleted, and doctor finds nothing': () => {
    const store = storeWith(1)
    assert.equal(ok(`update 1 --name Farn --store ${store}`), '{"id":1,"name":"Farn"}\n')
    ok(`delete 1 --yes --store ${store}`)
    ok(`doctor --store ${store}`)
  },
  'six processes create at once': async () => {
    const all = await Promise.all(
      upTo(6).map((n) => start(`create --store .\\six.db --id next --name p${n}`).ended),
    )
    assert.deepEqual(
      all.map(({ code }) => code),
      upTo(6).map(() => 0),
      all.map(({ err }) => err).join(''),
    )
    assert.equal(ok('count --store .\\six.db'), '6\n')
  },
  'two imports write at once': async () => {
    for (const n of [1, 2]) writeFileSync(`w${n}.csv`, many(20_000).replaceAll(/^(\d)/gm, `${n}$1`))
    const all = await Promise.all(
      [1, 2].map((n) => start(`import w${n}.csv --store .\\two.db`).ended),
    )
    assert.deepEqual(
      all.map(({ code }) => code),
      [0, 0],
      all.map(({ err }) => err).join(''),
    )
    assert.equal(ok('count --store .\\two.db'), '40000\n')
  },
  'six processes change the settings at once': async () => {
    const all = await Promise.all(
      upTo(6).map((n) => start(['stores', 'add', `s${n}`, join(folder, `s${n}.db`)]).ended),
    )
    assert.deepEqual(
      all.map(({ code }) => code),
      upTo(6).map(() => 0),
      all.map(({ err }) => err).join(''),
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
    fails('config set timeout 1m --timeout 100ms', 4, 'Another process held')
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
    child.stdout.once('data', () => child.stdout.destroy())
    const { code, err } = await ended
    assert.deepEqual([code, err], [0, ''])
  },
  'a service stores plants that outlive its process': async () => {
    const service = await serve('.\\served.db')
    const env = { PLANTS_TOKEN: token, PLANTS_STORE: service.address }
    try {
      ok('create --id 5 --name Grün', { env })
      ok('update 5 --tag x', { env })
      fails('create --id 5 --name Moos', 1, 'already exists', { env })
      assert.equal(ok('list', { env }), '{"id":5,"name":"Grün","tag":"x"}\n')
    } finally {
      await end(service)
    }
    assert.equal(ok('get 5 --store .\\served.db'), '{"id":5,"name":"Grün","tag":"x"}\n')
    fails('serve --store .\\served.db --socket x.sock', 2, '--socket does not work on Windows')
  },
  'an import into a service that was killed goes on, and leaves no journal': async () => {
    const count = 6000
    writeFileSync('service.csv', many(count))
    const service = await serve('.\\through.db')
    try {
      const env = { PLANTS_TOKEN: token, PLANTS_STORE: service.address }
      const first = start('import service.csv', env)
      await until('two chunks', () => Number(plants('count', { env }).out) > 1000, first)
      first.child.kill()
      await first.ended
      const { code, err } = plants('import service.csv', { env })
      assert.deepEqual([code, err.includes('Resuming an interrupted import')], [0, true], err)
      assert.equal(ok('count', { env }), `${count}\n`)
    } finally {
      await end(service)
    }
    // Before Node 24.15, the driver keeps the journal open until the process ends, so that it stays, empty.
    if (hasOwnSqlite) assert.deepEqual(leftIn(join(data, 'imports')), [])
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
  'hints name commands of Windows, which its shells run': () => {
    for (const name of ['two words', "it's 5 $ `x"]) {
      const directory = join(folder, name)
      const args = ['export', join(directory, 'x.csv')]
      const hint = fails(args, 74, 'could not be written')
      const command = /Make it with: (?<command>.*)/.exec(hint).groups.command
      for (const shell of shells.filter(({ quotesAll }) => quotesAll || name === 'two words')) {
        shell.run(command)
        assert(existsSync(directory), `${shell.name} did not run: ${command}`)
        rmSync(directory, { recursive: true })
      }
    }
    if (!powershell) return 'cmd alone: there is no PowerShell'
  },
  'PowerShell completes': () => {
    writeFileSync('complete.ps1', ok('completion powershell'))
    if (!powershell) return 'there is no PowerShell'
    const lines = [
      'crea',
      'list --outp',
      'list --output js',
      'list --output=js',
      'stores ',
      'list --store gar',
    ]
    writeFileSync(
      'try.ps1',
      `Invoke-Expression (Get-Content -Raw complete.ps1)
foreach ($words in ${lines.map((line) => `'${line}'`)}) {
  $line = "plants $words"
  (TabExpansion2 $line $line.Length).CompletionMatches[0].CompletionText
}`,
    )
    const out = powershell.run('./try.ps1')
    assert.deepEqual(out.trim().split(/\r?\n/), [
      'create',
      '--output',
      'json',
      '--output=json',
      'add',
      'garden',
    ])
  },
}

function upTo(count) {
  return Array.from({ length: count }, (_, at) => at + 1)
}

/** A shell that runs a command line; undefined where there is none: wine has one that does nothing. */
function shellNamed(name, args, quotesAll) {
  const env = { ...base, Path: `${join(bin, '../../../.bin')};${process.env.Path}` }
  const run = (command) => {
    const options = { encoding: 'utf8', env, windowsVerbatimArguments: name === 'cmd' }
    const { status, stdout, stderr } = spawnSync(name, [...args, command], options)
    assert.equal(status, 0, `${name}: ${command}: ${stderr}`)
    return stdout
  }
  return { name, quotesAll, run }
}

const [powershell] = ['pwsh', 'powershell']
  .map((name) => shellNamed(name, ['-NoProfile', '-ExecutionPolicy', 'Bypass', '-Command'], true))
  .filter(
    ({ name, run }) =>
      spawnSync(name, ['-NoProfile', '-Command', '1 + 1'], { encoding: 'utf8' }).stdout?.trim() ===
        '2' && run('1'),
  )
const shells = [shellNamed('cmd', ['/d', '/s', '/c'], false), powershell].filter(Boolean)

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
