// Tries the packed package on Windows: npm run test:windows [-- --only NODE,…] [WORDS]
//   --only 24,20   on Linux, which needs Debian's wine, the versions of Windows' own Node; on Windows it is the own one
//   WORDS             only the checks with these words in their names
// The checks are in windows/checks.mjs, and here those of a console. The exit code is 1 when one failed, and 2 when
// something is missing.
import { spawn as spawnProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { spawn as spawnOnTerminal } from '@lydell/node-pty'
import { end, print, temporaryFolder } from '../bench/common.mjs'
import { fetchNode } from '../bench/nodes.mjs'

const root = join(import.meta.dirname, '..')
const isWindows = process.platform === 'win32'
const usage = 'npm run test:windows [-- --only 24,20] [WORDS]'
const token = 'a-token-that-is-long-enough'
let windows

const versions = ['20', '22', '24', '26'] // there is no 20.19 for Windows in the registry
const start = performance.now()

async function main() {
  const { values, positionals } = readArguments()
  const names = isWindows ? [process.versions.node] : values.only.split(',')
  const unknown = isWindows ? undefined : names.find((name) => !versions.includes(name))
  if (unknown !== undefined) end(2, `--only must be some of ${versions.join()}, but has ${unknown}`)
  windows = isWindows ? onWindows() : await onWine()
  try {
    const bin = installed()
    for (const name of names) await check(name, bin, positionals)
  } finally {
    windows.end()
  }
}

function readArguments() {
  try {
    const only = { type: 'string', default: '24,20' }
    return parseArgs({ options: { only }, allowPositionals: true })
  } catch (error) {
    return end(2, `${usage}: ${error.message}`)
  }
}

function secondsSince(begin) {
  return ((performance.now() - begin) / 1000).toFixed(0)
}

/** Where things are, for this process and for Windows, and how a program of Windows is started. */
function onWindows() {
  const folder = temporaryFolder(tmpdir())
  return {
    folder,
    path: (...parts) => join(folder, ...parts),
    env: process.env,
    command: [],
    nodeOf,
    end() {},
  }

  function nodeOf() {
    return process.execPath
  }
}

/** The drive of wine is kept with what npm has fetched: it takes 20 s to make. */
async function onWine() {
  if (spawnSync('wine', ['--version'], { env: { ...process.env, WINEDEBUG: '-all' } }).status !== 0)
    end(
      2,
      `${usage} needs wine. On Debian, install it with: apt-get install --no-install-recommends wine wine64`,
    )
  const prefix = join(root, 'node_modules/.cache/wine')
  const env = {
    ...process.env,
    ...{
      WINEPREFIX: prefix,
      WINEARCH: 'win64',
      WINEDEBUG: '-all',
      WINEDLLOVERRIDES: 'mscoree,mshtml=',
    },
    ...{ LC_ALL: 'C.UTF-8', DISPLAY: '' },
  }
  const run = (...args) => spawnSync('wine', args, { env, stdio: 'ignore' }).status
  if (!existsSync(join(prefix, 'ready'))) {
    rmSync(prefix, { recursive: true, force: true })
    run('wineboot', '-i')
    // By default, wine is Windows 7, which Node refuses.
    run('reg', 'add', 'HKCU\\Software\\Wine', '/v', 'Version', '/d', 'win10', '/f')
    writeFileSync(join(prefix, 'ready'), '')
  }
  const [folder, share] = [
    join(prefix, 'drive_c/plants'),
    join(prefix, 'dosdevices/unc/localhost/share'),
  ]
  for (const path of [folder, share]) {
    rmSync(path, { recursive: true, force: true })
    mkdirSync(path, { recursive: true })
  }
  const path = (...parts) => ['C:\\plants', ...parts].join('\\')
  return {
    folder,
    path,
    env,
    command: ['wine'],
    nodeOf,
    end: () => spawnSync('wineserver', ['-k'], { env }),
  }

  /**
   * wine 8 has VirtualAlloc2 without the placeholders for which V8 takes it from Node 24 on: under another name, V8 does
   * without it.
   */
  function nodeOf(name) {
    const bytes = readFileSync(fetchNode(name, 'win32-x64'))
    for (
      let at = bytes.indexOf('VirtualAlloc2\0');
      at >= 0;
      at = bytes.indexOf('VirtualAlloc2\0', at)
    )
      bytes.write('VirtualAllocX\0', at, 'latin1')
    writeFileSync(join(folder, `node-${name}.exe`), bytes)
    return path(`node-${name}.exe`)
  }
}

/** Installs the package as npm would, with the native file of Windows. Returns the path of the program on Windows. */
function installed() {
  const app = join(windows.folder, 'app')
  mkdirSync(app)
  npm(['pack', '--silent', '--pack-destination', windows.folder], root)
  const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  writeFileSync(join(app, 'package.json'), '{"private":true}')
  const quiet = ['--silent', '--ignore-scripts', '--no-audit', '--no-fund']
  npm(
    [
      'install',
      ...quiet,
      ...(isWindows ? [] : ['--os=win32', '--cpu=x64']),
      `../${name}-${version}.tgz`,
    ],
    app,
  )
  cpSync(join(import.meta.dirname, 'windows/checks.mjs'), join(windows.folder, 'checks.mjs'))
  return windows.path('app', 'node_modules', name, 'bin', 'plants.js')
}

function npm(args, cwd) {
  // npm is no executable on Windows.
  const { status, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8', shell: isWindows })
  if (status !== 0) end(1, `npm ${args.join(' ')} ended with ${status}\n${stderr}`)
}

async function check(name, bin, words) {
  const begin = performance.now()
  const node = windows.nodeOf(name)
  print(`# Node ${name}, ready after ${secondsSince(start)} s`)
  const failures = [
    await runChecks(name, node, bin, words),
    ...(await runConsoleChecks(name, node, bin, words)),
  ]
  const failed = failures.reduce((sum, count) => sum + count, 0)
  print(
    `# Node ${name}: ${failed === 0 ? 'all passed' : `${failed} failed`}, ${secondsSince(begin)} s`,
  )
  if (failed > 0) process.exitCode = 1
}

/** Into a file, because a program of wine cannot write to a pipe of Linux. Returns how many failed. */
async function runChecks(name, node, bin, words) {
  const out = join(windows.folder, `checks-${name}.txt`)
  const fd = openSync(out, 'w')
  mkdirSync(join(windows.folder, `try-${name}`))
  const [program, ...args] = [
    ...windows.command,
    node,
    windows.path('checks.mjs'),
    bin,
    windows.path(`try-${name}`),
    ...words,
  ]
  const child = spawnProcess(program, args, {
    env: windows.env,
    stdio: ['ignore', fd, fd],
    cwd: windows.folder,
  })
  let shown = 0
  const show = () => {
    const text = readFileSync(out, 'utf8')
    process.stdout.write(text.slice(shown))
    shown = text.length
  }
  const timer = setInterval(show, 1000)
  const [code] = await once(child, 'close')
  clearInterval(timer)
  show()
  const failed = readFileSync(out, 'utf8').match(/^FAIL /gm)?.length ?? 0
  if (code !== 0 && failed === 0) print(`FAIL the checks ended with ${code}`)
  return code === 0 ? 0 : Math.max(failed, 1)
}

/** Each returns 0, or 1 when it failed. */
async function runConsoleChecks(name, node, bin, words) {
  const store = windows.path(`try-${name}`, 'console.db')
  const run = (args) => new Console(node, [bin, ...args, '--store', store])
  const one = async (what, action) => {
    if (!what.includes(words.join(' '))) return 0
    const begin = performance.now()
    try {
      await action()
      print(`ok   ${what} (${secondsSince(begin)} s)`)
      return 0
    } catch (error) {
      print(
        `FAIL ${what} (${secondsSince(begin)} s)\n    ${error.message.replaceAll('\n', '\n    ')}`,
      )
      return 1
    }
  }
  return [
    await one('prompts on a console create a plant', async () => {
      const console = run(['create'])
      await console.answer('id', '\r')
      await console.answer('name', 'Blüte\r')
      await console.answer('none', '\r')
      await console.ends(0)
    }),
    await one('a console shows umlauts', async () => {
      const console = run(['list'])
      await console.ends(0)
      console.shows('Blüte')
    }),
    await one('Ctrl-C at a prompt changes nothing', async () => {
      const console = run(['create'])
      await console.answer('id', '\x03')
      await console.ends(130)
    }),
    await one('a service answers, and Ctrl-C drains it', async () => {
      const console = run(['serve', '--port', '0', '--allow', 'create,read'])
      const [, address] = await console.see(/(http:\/\/127\.0\.0\.1:\d+)/)
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const created = await fetch(`${address}/plants`, {
        method: 'POST',
        headers,
        body: '{"id":9,"name":"Moos"}',
      })
      const stored = await fetch(`${address}/plants/9`, { headers })
      const [status, text] = [created.status, await stored.text()]
      if (status !== 200 || text !== '{"id":9,"name":"Moos"}')
        throw new Error(`It answered ${status} ${text}`)
      console.type('\x03')
      await console.ends(0)
    }),
  ]
}

class Console {
  #screen = ''
  #look = () => {}
  #pty
  #ended

  constructor(node, args) {
    const [program, ...rest] = [...windows.command, node, ...args]
    const env = { ...windows.env, TERM: 'xterm', PLANTS_SERVE_TOKEN: token }
    this.#pty = spawnOnTerminal(program, rest, { cols: 120, rows: 30, cwd: windows.folder, env })
    this.#pty.onData((data) => {
      this.#screen += data
      this.#look()
    })
    this.#ended = new Promise((resolve) => this.#pty.onExit(({ exitCode }) => resolve(exitCode)))
  }

  type(keys) {
    this.#pty.write(keys)
  }

  async answer(question, keys) {
    await this.see(RegExp(question))
    this.type(keys)
  }

  /** Resolves to the match, after those before. */
  see(pattern) {
    return within(`it shows ${pattern}`, this, (resolve) => {
      this.#look = () => {
        const match = pattern.exec(this.#screen)
        if (!match) return
        this.#screen = this.#screen.slice(match.index + match[0].length)
        resolve(match)
      }
      this.#look()
    })
  }

  shows(text) {
    if (!this.#screen.includes(text)) throw new Error(`It does not show ${text}: ${this.last}`)
  }

  async ends(wanted) {
    const code = await within('it ends', this, (resolve) => this.#ended.then(resolve))
    if (code !== wanted) throw new Error(`It ended with ${code}, not with ${wanted}: ${this.last}`)
  }

  kill() {
    this.#pty.kill()
  }

  get last() {
    return JSON.stringify(this.#screen.slice(-600))
  }
}

/** A limit for a hang. */
async function within(what, console, action) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => {
      console.kill()
      reject(new Error(`Not within a minute: ${what}: ${console.last}`))
    }, 60_000)
  })
  try {
    return await Promise.race([new Promise(action), late])
  } finally {
    clearTimeout(timer)
  }
}

await main()
