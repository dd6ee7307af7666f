import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { RunOptions } from '../helpers/sandbox/run.js'
import { isWindows, Sandbox } from '../helpers/sandbox/sandbox.js'

const names = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.txt'))

const withPaths = [
  'auth.txt',
  'config.txt',
  'database.txt',
  'import-sync.txt',
  'import.txt',
  'stores.txt',
  'usage.txt',
]

test.each(names.filter((name) => !withPaths.includes(name)))(
  'the transcript %s is what its commands print',
  expectSame,
)

test.skipIf(isWindows).each(withPaths)(
  'the transcript %s is what its commands print (needs paths with /)',
  expectSame,
)

test.each(names)(
  'the errors of the transcript %s are short, and each hint is one sentence',
  (name) => {
    for (const { message, hint } of readErrors(name)) {
      // The rejected records of an import have an advice for each cause.
      if (/^Rejected \d/.test(message)) continue
      const rows = [`plants: ${message}`, hint && `  ${hint}`].map((line = '') =>
        Math.ceil(line.replace(/HOME[/\w.-]*/g, 'HOME').length / 100),
      )
      expect(
        rows.reduce((sum, count) => sum + count, 0),
        `${message}\n${hint}`,
      ).toBeLessThan(3)
      expect(hint ?? '').not.toMatch(/[.] [A-Z]/)
    }
  },
)

/** Reads the errors of a transcript, as text or as JSON. */
function readErrors(name: string): { message: string; hint?: string }[] {
  const text = readFileSync(join(import.meta.dirname, name), 'utf8').replaceAll(/\^\[\[\d+m/g, '')
  const texts = text.matchAll(/^! plants: (?<message>(?!warning).*)(?:\n! {3}(?<hint>.*))?$/gm)
  const lines = text.matchAll(/^! (\{"error".*\})$/gm)
  return [
    ...Array.from(texts, ({ groups }) => ({ ...(groups as { message: string; hint?: string }) })),
    ...Array.from(lines, ([, json = '']) => JSON.parse(json)),
  ]
}

async function expectSame(name: string): Promise<void> {
  const path = join(import.meta.dirname, name)
  await expect(await rerun(readFileSync(path, 'utf8'))).toMatchFileSnapshot(path)
}

/**
 * Runs the commands of a transcript again, and returns it with what they print now. Each `# Title` begins a new sandbox.
 * A command is a line after `$ `, or after `tty$ ` for one whose output is a terminal of 200 columns. Below it stands its
 * stdout, then its stderr with `! ` before each line, then its exit code in brackets, unless that is 0.
 */
async function rerun(text: string): Promise<string> {
  let sandbox = new Sandbox()
  const lines: string[] = []
  for (const line of text.split('\n')) {
    if (line.startsWith('# ')) sandbox = new Sandbox()
    const [, terminal, command] = /^(tty)?\$ (.*)/.exec(line) ?? []
    if (command !== undefined)
      lines.push(line, ...(await runLine(command, terminal !== undefined, sandbox)))
    else if (line === '' || line.startsWith('#')) lines.push(line)
  }
  return `${lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()}\n`
}

async function runLine(line: string, isTerminal: boolean, sandbox: Sandbox): Promise<string[]> {
  const { words, env, stdin, target } = parse(line, sandbox)
  const terminals: RunOptions['terminals'] = isTerminal ? ['stdout', 'stderr'] : []
  const { code, out, err } =
    words[0] === 'plants'
      ? await sandbox.run(words.slice(1), {
          env,
          terminals,
          columns: 200,
          ...(stdin !== undefined && { stdin }),
        })
      : { code: 0, out: builtIn(words, sandbox), err: '' }
  if (target !== undefined) sandbox.write(target, out)
  const lasting = err.replaceAll(/\r[^\r\n]*\u001b\[K/g, '') // without lines that were erased
  const text = (target === undefined ? out : '') + lasting.replace(/^/gm, '! ').replace(/! $/, '')
  const stable = text
    .replaceAll(JSON.stringify(sandbox.home).slice(1, -1), 'HOME')
    .replaceAll(sandbox.home, 'HOME')
    .replace(/HOME[\\\w.-]+/g, (path) => path.replaceAll(/\\+/g, '/')) // on Windows
    .replaceAll(': mkdir HOME', ': mkdir -p HOME') // on Windows
    .replaceAll('\u001b', '^[')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]{8,12}Z|\d{8}T\d{6}Z/g, 'TIME')
    .replace(/\d{4}-\d\d-\d\d at \d\d:\d\d UTC/g, 'TIME')
  const shownCode = code === 0 ? [] : [`[${code}]`]
  return [...(stable === '' ? [] : stable.replace(/\n$/, '').split('\n')), ...shownCode]
}

/** `NAME=value plants … < FILE`, `<<< 'a line'` or `> FILE`, with words in quotes as in bash; `$'…'` for the escapes of JSON. */
function parse(line: string, sandbox: Sandbox) {
  const env: Record<string, string> = {}
  const words: string[] = []
  const operands: Record<string, string> = {}
  for (const [, operator, word = ''] of line.matchAll(
    /(<<<|[<>])?\s*((?:\$?'(?:\\.|[^'])*'|"[^"]*"|[^\s'"<>])+)/g,
  )) {
    const text = unquoted(word).replaceAll('HOME', sandbox.home)
    const [, name, value = ''] = /^([A-Z_]+)=(.*)$/s.exec(text) ?? []
    if (operator !== undefined) operands[operator] = text
    else if (name !== undefined && words.length === 0) env[name] = value
    else words.push(text)
  }
  const { '<': source, '<<<': text, '>': target } = operands
  return {
    words,
    env,
    target,
    stdin: source === undefined ? text && `${text}\n` : sandbox.read(source),
  }
}

function unquoted(word: string): string {
  return word.replace(/(\$?)'((?:\\.|[^'])*)'|"([^"]*)"/g, (_, dollar, single, double) =>
    dollar === '$' ? unescaped(single) : (single ?? double),
  )
}

function unescaped(text: string): string {
  return JSON.parse(`"${text.replace(/\\'/g, "'").replace(/"/g, '\\"')}"`)
}

function builtIn([name, ...words]: string[], sandbox: Sandbox): string {
  const paths = words.map((word) => join(sandbox.home, word))
  if (name === 'echo') return `${words.join(' ')}\n`
  if (name === 'printf') return words.join(' ')
  if (name === 'cat') return paths.map((path) => readFileSync(path, 'utf8')).join('')
  if (name === 'ls') return listed(paths[0] ?? sandbox.home)
  if (name === 'rm') for (const path of paths) rmSync(path, { recursive: true })
  else if (name === 'mkdir') for (const path of paths) mkdirSync(path, { mode: 0o700 })
  else throw new Error(`A transcript has no command ${name}`)
  return ''
}

function listed(path: string): string {
  return existsSync(path)
    ? readdirSync(path)
        .map((name) => `${name}\n`)
        .join('')
    : ''
}
