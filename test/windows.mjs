// Tries the packed package on Windows: npm run test:windows [-- --only NODE,…] [WORDS]
//   --only 24,20   on Linux, which needs Debian's wine, the versions of Windows' Node; on Windows it is the own one
//   WORDS          only the checks with these words in their names
// Those of a console are here, all others in windows/checks.mjs. The exit code is 1 when one failed, and 2 when
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
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { spawn as spawnOnTerminal } from '@lydell/node-pty'
import { createTemporaryFolder, end, print } from '../bench/common.mjs'
import { fetchNode } from '../bench/nodes.mjs'

const root = join(import.meta.dirname, '..')
const isWindows = process.platform === 'win32'
const usage = 'npm run test:windows [-- --only 24,20] [WORDS]'
const token = 'a-token-that-is-long-enough'
let windows

const versions = ['20', '22', '24', '26'] // there is no 20.19 for Windows in the registry

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
    windows.stop()
  }
}

function readArguments() {
  try {
    return parseArgs({
      options: { only: { type: 'string', default: '24,20' } },
      allowPositionals: true,
    })
  } catch (error) {
    return end(2, `${usage}: ${error.message}`)
  }
}

/** Where things are, for this process and for Windows, and how a program of Windows is started. */
function onWindows() {
  const folder = createTemporaryFolder()
  const path = (...parts) => join(folder, ...parts)
  return { folder, path, env: process.env, command: [], nodeOf: () => process.execPath, stop() {} }
}

/** The drive of wine is kept with what npm has fetched: it takes 20 s to make. */
async function onWine() {
  if (spawnSync('wine', ['--version'], { env: { ...process.env, WINEDEBUG: '-all' } }).status !== 0)
    end(2, `${usage} needs wine: apt-get install --no-install-recommends wine wine64`)
  const prefix = join(root, 'node_modules/.cache/wine')
  const own = { WINEPREFIX: prefix, WINEARCH: 'win64', WINEDEBUG: '-all', DISPLAY: '' }
  const env = { ...process.env, ...own, WINEDLLOVERRIDES: 'mscoree,mshtml=', LC_ALL: 'C.UTF-8' }
  const run = (...args) => spawnSync('wine', args, { env, stdio: 'ignore' }).status
  if (!existsSync(join(prefix, 'ready'))) {
    rmSync(prefix, { recursive: true, force: true })
    run('wineboot', '-i')
    // By default, wine is Windows 7, which Node refuses.
    run('reg', 'add', 'HKCU\\Software\\Wine', '/v', 'Version', '/d', 'win10', '/f')
    writeFileSync(join(prefix, 'ready'), '')
  }
  const folder = join(prefix, 'drive_c/plants')
  for (const path of [folder, join(prefix, 'dosdevices/unc/localhost/share')]) {
    rmSync(path, { recursive: true, force: true })
    mkdirSync(path, { recursive: true })
  }
  const path = (...parts) => ['C:\\plants', ...parts].join('\\')
  const stop = () => spawnSync('wineserver', ['-k'], { env })
  return { folder, path, env, command: ['wine'], nodeOf, stop }

  /**
   * wine 8 has VirtualAlloc2 without the placeholders for which V8 takes it from Node 24 on: under another name, V8 does
   * without it.
   */
  function nodeOf(name) {
    const bytes = readFileSync(fetchNode(name, 'win32-x64'))
    const text = bytes.toString('latin1').replaceAll('VirtualAlloc2\0', 'VirtualAllocX\0')
    writeFileSync(join(folder, `node-${name}.exe`), text, 'latin1')
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
  const platform = isWindows ? [] : ['--os=win32', '--cpu=x64']
  npm(['install', ...quiet, ...platform, `../${name}-${version}.tgz`], app)
  cpSync(join(import.meta.dirname, 'windows/checks.mjs'), join(windows.folder, 'checks.mjs'))
  return windows.path('app', 'node_modules', name, 'bin', 'plants.js')
}

function npm(args, cwd) {
  // npm is no executable on Windows.
  const { status, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8', shell: isWindows })
  if (status !== 0) end(1, `npm ${args.join(' ')} ended with ${status}\n${stderr}`)
}

async function check(name, bin, words) {
  const node = windows.nodeOf(name)
  print(`# Node ${name}`)
  const inPipes = await runChecks(name, node, bin, words)
  const failed = inPipes + (await runConsoleChecks(name, node, bin, words))
  print(`# Node ${name}: ${failed === 0 ? 'all passed' : `${failed} failed`}`)
  if (failed > 0) process.exitCode = 1
}

/** Into a file, because a program of wine cannot write to a pipe of Linux. Returns how many failed. */
async function runChecks(name, node, bin, words) {
  const out = join(windows.folder, `checks-${name}.txt`)
  const fd = openSync(out, 'w')
  mkdirSync(join(windows.folder, `try-${name}`))
  const place = [windows.path('checks.mjs'), bin, windows.path(`try-${name}`)]
  const [program, ...args] = [...windows.command, node, ...place, ...words]
  const { env, folder: cwd } = windows
  const child = spawnProcess(program, args, { env, stdio: ['ignore', fd, fd], cwd })
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

/** Returns how many failed. */
async function runConsoleChecks(name, node, bin, words) {
  const store = windows.path(`try-${name}`, 'console.db')
  const run = (args) => new Console(node, [bin, ...args, '--store', store])
  const checks = {
    'prompts on a console create a plant': async () => {
      const console = run(['create'])
      await console.answer('id', '\r')
      await console.answer('name', 'Blüte\r')
      await console.answer('none', '\r')
      await console.ends(0)
    },
    'a console shows umlauts': async () => {
      const console = run(['list'])
      await console.ends(0)
      console.shows('Blüte')
    },
    'Ctrl-C at a prompt changes nothing': async () => {
      const console = run(['create'])
      await console.answer('id', '\x03')
      await console.ends(130)
    },
    'a service answers, and Ctrl-C drains it': async () => {
      const console = run(['serve', '--port', '0', '--allow', 'create,read'])
      const [, address] = await console.see(/(http:\/\/127\.0\.0\.1:\d+)/)
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const create = { method: 'POST', headers, body: '{"id":9,"name":"Moos"}' }
      const { status } = await fetch(`${address}/plants`, create)
      const stored = await (await fetch(`${address}/plants/9`, { headers })).text()
      if (status !== 200 || stored !== create.body)
        throw new Error(`It answered ${status} ${stored}`)
      console.type('\x03')
      await console.ends(0)
    },
  }
  let failed = 0
  for (const [what, action] of Object.entries(checks)) {
    if (!what.includes(words.join(' '))) continue
    try {
      await action()
      print(`ok   ${what}`)
    } catch (error) {
      failed += 1
      print(`FAIL ${what}\n    ${error.message.replaceAll('\n', '\n    ')}`)
    }
  }
  return failed
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
