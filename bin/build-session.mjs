// Draws docs/session.svg: a terminal in which the commands below have really been run.   node bin/build-session.mjs
// [FILE]
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { spawn } from '@lydell/node-pty'
import xterm from '@xterm/headless'

const root = join(import.meta.dirname, '..')
const [columns, rows] = [80, 36]
const patience = 20_000 // ms
/** The colours of a terminal: 1 red, 2 green, 6 cyan. */
const palette = { 1: '#f47067', 2: '#8ddb8c', 6: '#76e3ea' }
const [cellWidth, lineHeight, margin] = [8.4, 19, 16]

/**
 * What is typed, each when the line of the cursor begins with this: a prompt, behind which there is at most a proposal.
 */
const session = [
  ['$', 'plants create'],
  ['? id', ''],
  ['? name', 'Boston Fern'],
  ['? tag', 'shade'],
  ['$', 'cat herbs.csv'],
  ['$', 'plants import herbs.csv'],
  ['$', 'plants list'],
  ['$', 'plants tokens create --note laptop > token.txt'],
  ['$', 'plants serve --port 8080 > /dev/null 2> serve.log &'],
  ['$', 'plants stores add team http://127.0.0.1:8080'],
  ['$', 'plants auth login --store team --from-stdin < token.txt'],
  ['$', 'plants create --store team --id 4 --name Rose'],
  ['$', 'plants count'],
]

const folder = mkdtempSync(join(tmpdir(), 'plants-session-'))
let promptLine = -1
const screen = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true })
const shell = spawn('bash', ['--norc', '--noprofile'], { cols: columns, rows, cwd: prepare(), env: environment() })
const ended = new Promise((resolve) => shell.onExit(resolve))
shell.onData((data) => screen.write(data))
try {
  for (const [awaited, text] of session) {
    await prompted(awaited)
    shell.write(`${text}\r`)
  }
  await prompted('$')
  writeFileSync(process.argv[2] ?? join(root, 'docs/session.svg'), drawing())
} finally {
  shell.kill('SIGHUP') // which bash passes on to the service
  await ended
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

function prepare() {
  const home = join(folder, 'home')
  mkdirSync(home)
  mkdirSync(join(folder, 'bin'))
  symlinkSync(join(root, 'bin/plants.js'), join(folder, 'bin/plants'))
  writeFileSync(join(home, 'herbs.csv'), 'id,name,tag\n2,Mint,herb\n3,Sage,herb\n')
  return home
}

function environment() {
  return {
    PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
    HOME: join(folder, 'home'),
    TERM: 'xterm-256color',
    PS1: '$ ',
  }
}

/** Waits for a prompt in a line below the last one. */
async function prompted(text) {
  for (const start = performance.now(); performance.now() - start < patience; await wait(20)) {
    const { active } = screen.buffer
    const line = active.getLine(active.cursorY).translateToString(true)
    const isPrompt = text === '$' ? line.trimEnd() === '$' : line.startsWith(text)
    if (!isPrompt || active.cursorY === promptLine) continue
    promptLine = active.cursorY
    return
  }
  throw new Error(`The terminal does not prompt with ${text}`)
}

/** The lines of the terminal as an SVG: a text for each line, a tspan for each style in it. */
function drawing() {
  const { active } = screen.buffer
  const lines = Array.from({ length: active.cursorY }, (_, y) => active.getLine(y))
  const [width, height] = [columns * cellWidth + 2 * margin, lines.length * lineHeight + 2 * margin]
  const texts = lines.map((line, y) => {
    const spans = runsOf(line).map(
      ({ x, style, text }) => `<tspan x="${(margin + x * cellWidth).toFixed(1)}"${style}>${escaped(text)}</tspan>`,
    )
    return `<text y="${margin + 14 + y * lineHeight}" xml:space="preserve">${spans.join('')}</text>`
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">`,
    '<title>A terminal session with plants</title>',
    `<rect width="${width}" height="${height}" rx="8" fill="#22272e"/>`,
    '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14" fill="#d1d7e0">',
    ...texts,
    '</g>',
    '</svg>',
    '',
  ].join('\n')
}

/** The parts of a line that have one style, each with its column. */
function runsOf(line) {
  const runs = []
  for (let x = 0; x < line.translateToString(true).length; x += 1) {
    const cell = line.getCell(x)
    const colour = palette[cell.getFgColor()] && ` fill="${palette[cell.getFgColor()]}"`
    const style = `${colour ?? ''}${cell.isBold() ? ' font-weight="bold"' : ''}${cell.isDim() ? ' opacity="0.6"' : ''}`
    if (runs.at(-1)?.style === style) runs.at(-1).text += cell.getChars() || ' '
    else runs.push({ x, style, text: cell.getChars() || ' ' })
  }
  return runs
}

/** The number of a process and the time of an import are others each time. */
function escaped(text) {
  return text
    .replace(/^\[1\] \d+$/, '[1] 4711')
    .replace(/ in \d+\.\d s:/, ' in 0.1 s:')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
}
