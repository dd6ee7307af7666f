import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { isHere } from '../../helpers/programs.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { User } from '../../helpers/user.js'

const token = 's3cret-token'

/** Texts that each make a file called `made` in some shell, where that takes them for more than a word, and others that mean something. */
const hostile = [
  "x\n'; touch made; #",
  "\u001b'; touch made; #",
  "\\'; touch made; #",
  "\u0001\\' $(touch made) '",
  "'\n touch made\n'",
  '"; touch made; "',
  '$(touch made)`touch made`',
  `\${x:-$(touch made)} $((1)) $x !! !touch`,
  "$'\\'; touch made; '",
  'x;touch made',
  '& touch made &',
  '| touch made',
  '> made',
  '<(touch made)',
  '=(touch made)',
  '=ls',
  '~root ~ *?[a]{b,c}',
  '-K made',
  '@made',
  'a\tb\r\u007f\u009b31m\u202e\u2028 ü🌿',
  '%s%n\\n\\',
  "''",
  "end'",
]

describe.each(['dash', 'bash', 'zsh'])('the command of --curl in %s gives curl what was meant, and runs nothing else:', (shell) => {
  const reason = isHere(shell) ? '' : ` (skipped: ${shell} is not installed)`

  test.skipIf(reason !== '')(`paths of sockets and certificates${reason}`, async () => {
    const { user, run } = world(shell)
    const commands: string[] = []
    const expected: (string | undefined)[][] = []
    for (const [index, text] of hostile.entries()) {
      const name = text.replaceAll('/', '_')
      const certificates = join(user.home, `ca${index}${name}`)
      writeFileSync(certificates, certificate)
      const socket = `./s${index}${name}`
      const argv = ['create', '--id', '1', '--name', 'x', '--curl', '--ca-cert', certificates]
      const { code, out, err } = await user.run([...argv, '--store', `unix:${socket}`], { env: { PLANTS_TOKEN: token } })
      expect({ code, err }).toEqual({ code: 0, err: '' })
      commands.push(out)
      expected.push([join(user.home, socket), certificates])
    }
    const calls = run(commands)
    expect(calls.map((argv) => [wordAfter('--unix-socket', argv), wordAfter('--cacert', argv)])).toEqual(expected)
  })

  test.skipIf(reason !== '')(`names, tags, keys and base paths${reason}`, async () => {
    const { user, run } = world(shell)
    const commands: string[] = []
    for (const text of hostile) {
      const key = text.replace(/[^!-~]/g, '_')
      const argv = ['create', '--id', '1', `--name=${text}`, `--tag=${text}`, `--idempotency-key=${key}`, '--curl', '--timeout', '1ms']
      const base = text.replace(/[?#]/g, '_')
      const env = { PLANTS_TOKEN: token, PLANTS_STORE: `http://127.0.0.1:9/v1/${base}`, ALL_PROXY: `http://${key.replace(/\W/g, '_')}:1` }
      const { code, out, err } = await user.run(argv, { env })
      expect({ code, err }).toEqual({ code: 0, err: '' })
      commands.push(out)
    }
    const calls = run(commands)
    expect(calls.map((argv) => JSON.parse(wordAfter('--data-binary', argv) ?? ''))).toEqual(
      hostile.map((text) => ({ id: 1, name: text, tag: text })),
    )
    const keys = calls.map((argv) => argv.find((word) => word.startsWith('idempotency-key: ')))
    expect(keys).toEqual(hostile.map((text) => `idempotency-key: ${text.replace(/[^!-~]/g, '_')}`))
    const urls = hostile.map((text) => `${new URL(`http://127.0.0.1:9/v1/${text.replace(/[?#]/g, '_')}`).href.replace(/\/+$/, '')}/plants`)
    expect(calls.map((argv) => argv.at(-1))).toEqual(urls)
    expect(calls.every((argv) => wordAfter('--noproxy', argv) === '*' && wordAfter('--max-time', argv) === '0.001')).toBe(true)
  })
})

test.each(['\u001b[31m', '\r', '\u009b', '\u202e', '\u007f'])(
  'a path that would drive a terminal is not printed there: %j',
  async (text) => {
    const user = new User()
    const argv = ['create', '--id', '1', '--name', 'x', '--curl', '--store', `unix:./s${text}`]
    const env = { PLANTS_TOKEN: token }
    const shown = await user.run(argv, { env, terminals: ['stdout'] })
    expect({ code: shown.code, out: shown.out, err: shown.err.split('\n')[1] }).toEqual({
      code: 2,
      out: '',
      err: '  Write it to a file instead: plants create --curl … > create.sh',
    })
    expect(await user.run(argv, { env })).toMatchObject({ code: 0, out: expect.stringContaining(text) })
    const asJson = await user.run([...argv, '--output', 'json'], { env, terminals: ['stdout'] })
    expect({ code: asJson.code, isSafe: !asJson.out.includes(text) }).toEqual({ code: 0, isSafe: true })
  },
)

/** A folder with a `curl` that writes down the words it is given, and what runs commands with it. */
function world(shell: string) {
  const user = new User()
  const folder = temporaryFolder()
  const record = join(folder, 'record')
  mkdirSync(join(folder, 'bin'))
  writeFileSync(join(folder, 'bin/curl'), `#!/bin/sh\nprintf '%s\\0' "$#" "$@" >> '${record}'\ncat >> '${record}.stdin'\n`)
  chmodSync(join(folder, 'bin/curl'), 0o755)
  const run = (commands: string[]): string[][] => {
    const before = readdirSync(user.home)
    const env = { PATH: `${join(folder, 'bin')}:${process.env['PATH']}`, HOME: user.home, PLANTS_TOKEN: token }
    const { status, stdout, stderr } = spawnSync(shell, { input: commands.join(''), cwd: user.home, env })
    expect({ status, out: stdout.toString(), err: stderr.toString() }).toEqual({ status: 0, out: '', err: '' })
    expect(readdirSync(user.home)).toEqual(before)
    expect(readFileSync(`${record}.stdin`, 'utf8')).toBe(`Authorization: Bearer ${token}`.repeat(commands.length))
    return existsSync(record) ? callsIn(readFileSync(record, 'utf8').split('\0')) : []
  }
  return { user, run }
}

function callsIn([count = '', ...words]: string[]): string[][] {
  const length = parseInt(count, 10)
  return Number.isNaN(length) ? [] : [words.slice(0, length), ...callsIn(words.slice(length))]
}

function wordAfter(flag: string, argv: string[]): string | undefined {
  return argv.includes(flag) ? argv[argv.indexOf(flag) + 1] : undefined
}

const [certificate = ''] = rootCertificates
