// Checks of the program on Windows, or under wine: node checks.mjs BIN FOLDER [WORDS]
// It prints a line for each check; the exit code is 1 if one failed.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
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
import {
  bin,
  configFolder,
  createStore,
  dataFolder,
  enterFolder,
  expectFailure,
  expectSuccess,
  folder,
  nameWords,
  runPlants,
  runPowerShell,
  serve,
  startPlants,
  stop,
  token,
  waitUntil,
} from './program.mjs'

enterFolder()

/** Lists what is left of files that were being written. */
const listRemains = (path = '.') =>
  readdirSync(path).filter((name) => /^\.plants-|\.new$|\.tmp$/.test(name))

/** Builds a CSV file with this number of plants. */
const buildTable = (count) =>
  `id,name\r\n${Array.from({ length: count }, (_, at) => `${at + 1},plant ${at}\r\n`).join('')}`

const checks = {
  'a drive letter is no scheme of a URL': () => {
    const paths = [
      join(folder, 'd1.db'),
      join(folder, 'd2').replaceAll('\\', '/'),
      `sqlite:${join(folder, 'd3.db')}`,
    ]
    for (const store of paths)
      expectSuccess(['create', '--store', store, '--id', '1', '--name', 'x'])
    assert.deepEqual(['d1.db', 'd2', 'd3.db'].map(existsSync), [true, true, true])
  },
  'a path has spaces, umlauts, % and #': () => {
    const directory = 'two words ß'
    mkdirSync(directory)
    expectSuccess(['create', '--store', `.\\${directory}\\50%25 #1.db`, '--id', '1', '--name', 'x'])
    assert.equal(expectSuccess(['count', '--store', join(folder, directory, '50%25 #1.db')]), '1\n')
    assert.deepEqual(readdirSync(directory), ['50%25 #1.db'])
  },
  'a store has a UNC path': () => {
    // Wine has a share of its own, and Windows one for administrators.
    const unc = ['\\\\localhost\\share', folder.replace(/^(.):/, '\\\\localhost\\$1$')].find(
      existsSync,
    )
    if (unc === undefined) return 'there is no share'
    const store = join(unc, 'unc 1%.db')
    rmSync(store, { force: true })
    expectSuccess(['create', '--store', store, '--id', '1', '--name', 'Fern'])
    expectSuccess(['create', '--store', store, '--id', '2', '--name', 'Moss'])
    expectSuccess(['backup', join(unc, 'unc.bak'), '--store', store])
    assert.equal(expectSuccess(['count', '--store', join(unc, 'unc.bak')]), '2\n')
  },
  'the default store is in LOCALAPPDATA, and the settings are in APPDATA': () => {
    expectSuccess('create --id next --name Moss')
    expectSuccess('config set timeout 1m')
    assert(existsSync(join(dataFolder, 'plants.db')))
    // The cache may be deleted, so it is not in a folder of the store.
    assert.deepEqual(readdirSync(join(dataFolder, '../..')), ['Cache', 'Data'])
    assert.equal(
      JSON.parse(readFileSync(join(configFolder, 'settings.json'), 'utf8')).timeout,
      '1m',
    )
    expectSuccess('config unset timeout')
  },
  'NUL is the null device': () => {
    const store = createStore(1)
    for (const name of ['NUL', 'nul', '\\\\.\\NUL']) {
      expectSuccess(`export ${name} --store ${store} --yes`)
      expectSuccess(`import ${name} --store ${store}`)
    }
    expectFailure('create --store sqlite:NUL --id 1 --name x', 4, 'is not a file')
    assert.deepEqual(
      readdirSync('.').filter((name) => /nul/i.test(name)),
      [],
    )
  },
  'an import reads a pipe, a file as stdin, and nothing': () => {
    expectSuccess('import --store .\\piped.db', { input: 'id,name\r\n7,x\r\n' })
    expectSuccess('import - --store .\\piped.db', { input: '{"id":8,"name":"y"}\r\n' })
    writeFileSync('stdin.csv', 'id,name\r\n9,z\r\n')
    const fd = openSync('stdin.csv', 'r')
    expectSuccess('import --store .\\piped.db', { stdio: [fd, 'pipe', 'pipe'] })
    closeSync(fd)
    assert.equal(expectSuccess('count --store .\\piped.db'), '3\n')
    expectFailure('import --store .\\piped.db', 2, 'import needs a file', {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  },
  'an export replaces a file, unless a program has it open': () => {
    const store = createStore(1, 2, 3)
    expectSuccess(`export e.csv --store ${store} --limit 1`)
    expectFailure(`export e.csv --store ${store}`, 2, 'already exists')
    expectSuccess(`export E.CSV --store ${store} --yes --limit 2`)
    const oldContent = readFileSync('e.csv', 'utf8')
    const fd = openSync('e.csv', 'r')
    const { code, err } = runPlants(`export e.csv --store ${store} --yes`)
    closeSync(fd)
    // A newer Windows replaces it all the same.
    if (code !== 0) {
      assert.deepEqual([code, readFileSync('e.csv', 'utf8')], [74, oldContent], err)
      assert.match(err, /another program has it open/)
    }
    assert.deepEqual(listRemains(), [])
  },
  'the same file in another case is known': () => {
    const store = createStore(1)
    const name = store.slice(2)
    for (const path of [name.toUpperCase(), `${name}-wal`, join(folder, name.toUpperCase())]) {
      const exportArgs = ['export', path, '--output', 'csv', '--store', store, '--yes']
      expectFailure(exportArgs, 2, 'is a file of the store')
      expectFailure(['backup', path, '--store', store], 2, 'is a file of the store')
    }
    writeFileSync('input.csv', 'id,name\r\n2,Moss\r\n')
    expectFailure(
      `import input.csv --rejects INPUT.CSV --store ${store}`,
      2,
      'already exists, and would be overwritten',
    )
    assert.equal(expectSuccess(`count --store ${store.toUpperCase()}`), '1\n')
  },
  'a backup is made, replaced and restored': () => {
    const store = createStore(1, 2)
    for (const command of ['backup b.db', 'backup B.DB', 'delete 1 --yes', 'restore b.db --yes'])
      expectSuccess(`${command} --store ${store}`)
    assert.equal(expectSuccess(`count --store ${store}`), '2\n')
    const kept = readdirSync('.').filter((name) =>
      name.startsWith(`${store.slice(2)}.before-restore-`),
    )
    assert.deepEqual([kept.length, expectSuccess(`count --store .\\${kept[0]}`)], [1, '1\n'])
    const fd = openSync('b.db', 'r')
    const { code, err } = runPlants(`backup b.db --store ${store}`)
    closeSync(fd)
    if (code !== 0) assert.match(err, /another program has it open/)
    assert.deepEqual(listRemains(), [])
  },
  'six processes change the settings at once': async () => {
    const runs = [1, 2, 3, 4, 5, 6].map(
      (number) => startPlants(['stores', 'add', `s${number}`, join(folder, `s${number}.db`)]).ended,
    )
    const results = await Promise.all(runs)
    assert.deepEqual(
      results.filter(({ code }) => code !== 0),
      [],
    )
    assert.equal(expectSuccess('stores list').trim().split('\n').length, 7)
    assert.deepEqual(listRemains(configFolder), [])
  },
  'a process that is killed leaves no lock': async () => {
    const lockPath = join(configFolder, 'settings.json.lock')
    const script = `
      const { DatabaseSync } = require(${JSON.stringify(join(bin, '../../../@photostructure/sqlite'))})
      const db = new DatabaseSync(${JSON.stringify(lockPath)})
      db.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE')
      process.stdout.write('locked')
      setInterval(() => db, 1000)`
    const holder = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    await new Promise((resolve) => holder.stdout.once('data', resolve))
    expectFailure('config set timeout 1m --timeout 100ms', 4, 'Another process has held')
    holder.kill()
    await new Promise((resolve) => holder.once('close', resolve))
    expectSuccess('config set timeout 1m')
    expectSuccess('config unset timeout')
  },
  'an import that was killed is resumed, also from a directory in another case': async () => {
    const count = 150_000
    writeFileSync('many.csv', `${buildTable(count)}x,no id\r\n`)
    const command = 'import many.csv --store .\\killed.db --rejects killed.csv'
    const first = startPlants(command)
    await waitUntil('a chunk', () => Number(runPlants('count --store .\\killed.db').out) > 0, first)
    first.child.kill()
    await first.ended
    const stored = Number(expectSuccess('count --store .\\killed.db'))
    assert(stored > 0 && stored < count, `${stored} were stored`)
    const cwd = folder.replace(/^./, (letter) =>
      letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
    )
    const { code, err } = runPlants(command.replace('many', 'MANY'), { cwd })
    assert.deepEqual([code, err.includes('Resuming an interrupted import')], [6, true], err)
    assert.equal(expectSuccess('count --store .\\killed.db'), `${count}\n`)
    assert.equal(readFileSync('killed.csv', 'utf8').split('\n').length, 3)
    assert.deepEqual(listRemains(), [])
  },
  'a reader that closes the pipe is no error': async () => {
    writeFileSync('long.csv', buildTable(20_000))
    expectSuccess('import long.csv --store .\\long.db')
    const { child, ended } = startPlants('list --store .\\long.db')
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
      expectSuccess(['create', '--id', '5', '--name', plant.name], { env })
      expectSuccess(['update', '5', '--tag', plant.tag], { env })
      expectFailure('create --id 5 --name Moos', 1, 'already exists', { env })
      assert.equal(expectSuccess('list', { env }), line)
    } finally {
      await stop(service)
    }
    assert.equal(expectSuccess('get 5 --store .\\served.db'), line)
    expectFailure(
      'serve --store .\\served.db --socket x.sock',
      2,
      '--socket is not supported on Windows',
    )
  },
  'a token command is run': async () => {
    const service = await serve(createStore(1))
    try {
      writeFileSync('print-token.cjs', `process.stdout.write(${JSON.stringify(token)})`)
      const command = [process.execPath, join(folder, 'print-token.cjs')].map((path) =>
        path.replaceAll(' ', '\\ '),
      )
      expectSuccess([
        'stores',
        'add',
        'garden',
        service.address,
        '--token-command',
        command.join(' '),
      ])
      assert.equal(expectSuccess('count --store garden'), '1\n')
    } finally {
      await stop(service)
    }
  },
  'PowerShell completes': () => {
    writeFileSync('complete.ps1', expectSuccess('completion powershell'))
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
    const out = runPowerShell('./try.ps1')
    if (out === undefined) return 'there is no PowerShell'
    const completed = ['create', '--output', 'json', '--output=json', 'add', 'garden']
    assert.deepEqual(out.split(/\r?\n/), completed)
  },
}

/** Runs a check, and returns its line, and whether it failed. */
async function runCheck(name, check) {
  const start = Date.now()
  let verdict = 'ok'
  let details = ''
  try {
    const missing = await check()
    if (missing) {
      verdict = 'part'
      details = `: ${missing}`
    }
  } catch (error) {
    verdict = 'FAIL'
    details = `\n    ${error.message.split('\n').slice(0, 12).join('\n    ')}`
  }
  const seconds = ((Date.now() - start) / 1000).toFixed(1)
  const line = `${verdict.padEnd(4)} ${name} (${seconds} s)${details}\n`
  return { line, hasFailed: verdict === 'FAIL' }
}

const names = Object.keys(checks).filter((name) => name.includes(nameWords.join(' ')))
for (const name of names) {
  const { line, hasFailed } = await runCheck(name, checks[name])
  writeSync(1, line)
  if (hasFailed) process.exitCode = 1
}
