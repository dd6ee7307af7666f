// Tries the packed package on Windows: npm run test:windows [-- --only NODE,…] [WORDS]
//   --only 24,20   the versions of Node on Linux, which needs Debian's wine; on Windows, the Node
//                  that runs this is tried
//   WORDS          only the checks with these words in their names
// The checks of a console are here, and all others in windows/checks.mjs. The exit code is 1 if one
// failed, and 2 if something is missing.
import { spawn, spawnSync } from 'node:child_process'
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
import { createTemporaryFolder, end, print } from '../../bench/common.mjs'
import { fetchNode } from '../../bench/nodes.mjs'
import { Console, token } from './windows/console.mjs'

const root = join(import.meta.dirname, '../..')
const isWindows = process.platform === 'win32'
const usage = 'npm run test:windows [-- --only 24,20] [WORDS]'
let windows

const versions = ['20', '22', '24', '26'] // there is no 20.19 for Windows in the registry

async function main() {
  const { values, positionals } = readArguments()
  const names = isWindows ? [process.versions.node] : values.only.split(',')
  const unknown = isWindows ? undefined : names.find((name) => !versions.includes(name))
  if (unknown !== undefined) end(2, `--only must be some of ${versions.join()}, but has ${unknown}`)
  windows = isWindows ? describeWindows() : await prepareWine()
  try {
    const bin = installPackage()
    for (const name of names) await testNode(name, bin, positionals)
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

/**
 * Describes where the files are for this process (`folder`) and for Windows (`getPath`), and how a
 * program of Windows is started (`command`).
 */
function describeWindows() {
  const folder = createTemporaryFolder()
  return {
    folder,
    getPath: (...parts) => join(folder, ...parts),
    env: process.env,
    command: [],
    findNode: () => process.execPath,
    stop: () => undefined,
  }
}

/**
 * Prepares under wine what `describeWindows` describes. The drive of wine is kept between runs,
 * next to what npm has fetched, because its creation takes 20 s.
 */
async function prepareWine() {
  if (spawnSync('wine', ['--version'], { env: { ...process.env, WINEDEBUG: '-all' } }).status !== 0)
    end(2, `${usage} needs wine: apt-get install --no-install-recommends wine wine64`)
  const prefix = join(root, 'node_modules/.cache/wine')
  const env = {
    ...process.env,
    WINEPREFIX: prefix,
    WINEARCH: 'win64',
    WINEDEBUG: '-all',
    WINEDLLOVERRIDES: 'mscoree,mshtml=',
    DISPLAY: '',
    LC_ALL: 'C.UTF-8',
  }
  const runWine = (...args) => spawnSync('wine', args, { env, stdio: 'ignore' })
  if (!existsSync(join(prefix, 'ready'))) {
    rmSync(prefix, { recursive: true, force: true })
    runWine('wineboot', '-i')
    // By default, wine says that it is Windows 7, on which Node does not start.
    runWine('reg', 'add', 'HKCU\\Software\\Wine', '/v', 'Version', '/d', 'win10', '/f')
    writeFileSync(join(prefix, 'ready'), '')
  }
  const folder = join(prefix, 'drive_c/plants')
  for (const path of [folder, join(prefix, 'dosdevices/unc/localhost/share')]) {
    rmSync(path, { recursive: true, force: true })
    mkdirSync(path, { recursive: true })
  }
  const getPath = (...parts) => ['C:\\plants', ...parts].join('\\')
  const stop = () => spawnSync('wineserver', ['-k'], { env })
  return { folder, getPath, env, command: ['wine'], findNode, stop }

  /**
   * From Node 24 on, V8 uses VirtualAlloc2 for its placeholders, which wine 8 does not have. V8
   * does without a function that it does not find, so the copy of Node asks for another name.
   */
  function findNode(name) {
    const bytes = readFileSync(fetchNode(name, 'win32-x64'))
    const text = bytes.toString('latin1').replaceAll('VirtualAlloc2\0', 'VirtualAllocX\0')
    writeFileSync(join(folder, `node-${name}.exe`), text, 'latin1')
    return getPath(`node-${name}.exe`)
  }
}

/**
 * Installs the package as npm would, with the native file of Windows.
 *
 * @returns the path of the program on Windows
 */
function installPackage() {
  const app = join(windows.folder, 'app')
  mkdirSync(app)
  runNpm(['pack', '--silent', '--pack-destination', windows.folder], root)
  const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  writeFileSync(join(app, 'package.json'), '{"private":true}')
  const quiet = ['--silent', '--ignore-scripts', '--no-audit', '--no-fund']
  const platform = isWindows ? [] : ['--os=win32', '--cpu=x64']
  runNpm(['install', ...quiet, ...platform, `../${name}-${version}.tgz`], app)
  for (const file of ['checks.mjs', 'program.mjs'])
    cpSync(join(import.meta.dirname, 'windows', file), join(windows.folder, file))
  return windows.getPath('app', 'node_modules', name, 'bin', 'plants.js')
}

function runNpm(args, cwd) {
  // On Windows, npm is a script of the shell.
  const { status, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8', shell: isWindows })
  if (status !== 0) end(1, `npm ${args.join(' ')} ended with ${status}\n${stderr}`)
}

/** Runs the checks with a version of Node. */
async function testNode(name, bin, words) {
  const node = windows.findNode(name)
  print(`# Node ${name}`)
  const failedInPipes = await runChecks(name, node, bin, words)
  const failedOnConsole = await runConsoleChecks(name, node, bin, words)
  const failedCount = failedInPipes + failedOnConsole
  print(`# Node ${name}: ${failedCount === 0 ? 'all passed' : `${failedCount} failed`}`)
  if (failedCount > 0) process.exitCode = 1
}

/**
 * Runs the checks of windows/checks.mjs. They write into a file, because a program of wine cannot
 * write to a pipe of Linux.
 *
 * @returns how many failed
 */
async function runChecks(name, node, bin, words) {
  const out = join(windows.folder, `checks-${name}.txt`)
  const fd = openSync(out, 'w')
  mkdirSync(join(windows.folder, `try-${name}`))
  const script = [windows.getPath('checks.mjs'), bin, windows.getPath(`try-${name}`), ...words]
  const [program, ...args] = [...windows.command, node, ...script]
  const { env, folder: cwd } = windows
  const child = spawn(program, args, { env, stdio: ['ignore', fd, fd], cwd })
  let printedLength = 0
  const printNewLines = () => {
    const text = readFileSync(out, 'utf8')
    process.stdout.write(text.slice(printedLength))
    printedLength = text.length
  }
  const timer = setInterval(printNewLines, 1000)
  const [code] = await once(child, 'close')
  clearInterval(timer)
  printNewLines()
  const failedCount = readFileSync(out, 'utf8').match(/^FAIL /gm)?.length ?? 0
  if (code !== 0 && failedCount === 0) print(`FAIL the checks ended with ${code}`)
  return code === 0 ? 0 : Math.max(failedCount, 1)
}

/**
 * Runs the checks of a console.
 *
 * @returns how many failed
 */
async function runConsoleChecks(name, node, bin, words) {
  const store = windows.getPath(`try-${name}`, 'console.db')
  const startOnConsole = (args) => new Console(windows, node, [bin, ...args, '--store', store])
  const checks = {
    'prompts on a console create a plant': async () => {
      const console = startOnConsole(['create'])
      await console.answer('id', '\r')
      await console.answer('name', 'Blüte\r')
      await console.answer('none', '\r')
      await console.waitForEnd(0)
    },
    'a console shows umlauts': async () => {
      const console = startOnConsole(['list'])
      await console.waitForEnd(0)
      console.assertShows('Blüte')
    },
    'Ctrl-C at a prompt changes nothing': async () => {
      const console = startOnConsole(['create'])
      await console.answer('id', '\x03')
      await console.waitForEnd(130)
    },
    'a service answers, and Ctrl-C drains it': async () => {
      const console = startOnConsole(['serve', '--port', '0', '--allow', 'create,read'])
      const [, address] = await console.waitForMatch(/(http:\/\/127\.0\.0\.1:\d+)/)
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const create = { method: 'POST', headers, body: '{"id":9,"name":"Moos"}' }
      const { status } = await fetch(`${address}/plants`, create)
      const stored = await (await fetch(`${address}/plants/9`, { headers })).text()
      if (status !== 200 || stored !== create.body)
        throw new Error(`It answered ${status} ${stored}`)
      console.type('\x03')
      await console.waitForEnd(0)
    },
  }
  let failedCount = 0
  for (const [title, check] of Object.entries(checks)) {
    if (!title.includes(words.join(' '))) continue
    try {
      await check()
      print(`ok   ${title}`)
    } catch (error) {
      failedCount += 1
      print(`FAIL ${title}\n    ${error.message.replaceAll('\n', '\n    ')}`)
    }
  }
  return failedCount
}

await main()
