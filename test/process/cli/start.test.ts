import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { version as current } from '../../../package.json'
import { oddSurroundings } from '../../helpers/differences.js'
import { canMount, isLinux } from '../../helpers/linux.js'
import { startUnder } from '../../helpers/process.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { printed, World } from '../../helpers/world.js'

describe.skipIf(process.env['PLANTS_BIN'] !== undefined)(
  'a Node.js that is too old (needs Node as its runtime)',
  () => {
    /** Starts the program on a Node that takes itself for another version. */
    async function startOn(pretended: string, line: string) {
      const preload = join(temporaryFolder(), 'version.cjs')
      const versions = `{ ...process.versions, node: '${pretended}' }`
      writeFileSync(preload, `Object.defineProperty(process, 'versions', { value: ${versions} })`)
      return new World().spawn(line, { env: { NODE_OPTIONS: `--require ${preload}` } })
    }

    test.each(['18.20.8', '20.18.3', '8.17.0'])(
      'is named in a sentence by every command: %s',
      async (old) => {
        const expected = {
          code: 70,
          out: '',
          err: `plants needs Node.js 20.19 or newer; this is ${old}\n`,
        }
        for (const line of ['--version', '--help', 'create --id 1 --name Fern', 'list -o json'])
          expect(await startOn(old, line)).toEqual(expected)
      },
    )

    test.each(['20.19.0', '21.0.0', '100.1.2'])('is not %s', async (known) => {
      expect(await startOn(known, '--version')).toEqual(printed(`${current}\n`))
    })
  },
)

test('a defect is printed with the functions in which it happened', async () => {
  const user = new World()
  user.write(
    'boom.cjs',
    "process.getBuiltinModule = process.dlopen = () => { throw new TypeError('boom') }",
  )
  const preload = join(user.home, 'boom.cjs')
  const env = { NODE_OPTIONS: `--require ${preload}`, BUN_OPTIONS: `--preload ${preload}` }
  const { code, out, err } = await user.spawn('create --id 1 --name Fern', { env })
  expect({ code, out, first: err.split('\n', 1)[0] }).toEqual({
    code: 70,
    out: '',
    first: 'plants: Internal error, a bug in plants: boom',
  })
  expect(err).toMatch(
    /\n {2}TypeError: boom\n(?: {6}at .*\n)* {6}at loadDriver \(.*\n(?: {6}at .*\n)+ {2}Please report it/,
  )
})

test('what runtimes and tools look for in the current folder changes nothing', async () => {
  const user = new World()
  const settings = 'PLANTS_STORE=/nonexistent/plants.db\nPLANTS_OUTPUT=text\n'
  for (const name of ['.env', '.env.local', '.env.production', '.env.development'])
    user.write(name, settings)
  user.write('preload.cjs', 'require("node:fs").writeFileSync("loaded", ""); console.log("loaded")')
  user.write('bunfig.toml', 'preload = ["./preload.cjs"]\n')
  user.write('tsconfig.json', '{')
  user.write('package.json', '{"name":"plants","type":"module","imports":{"#*":"./preload.cjs"}}')
  const before = readdirSync(user.home)
  const out = '{"name":"Fern"}\n'
  expect(await user.spawn('create --id 1 --name Fern')).toEqual({ code: 0, out, err: '' })
  expect(readdirSync(user.home).filter((name) => !before.includes(name))).toEqual(['data'])
})

describe.runIf(isLinux)('in odd surroundings a list ends as the table of differences says:', () => {
  const scripts: Record<string, string[]> = {
    'the current directory is gone': [
      'sh',
      '-c',
      'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"',
    ],
    'no /proc on Linux': [
      'unshare',
      '-rm',
      'sh',
      '-c',
      'mount -t tmpfs tmpfs /proc && exec "$0" "$@"',
    ],
  }

  test('they are all tried here', () => {
    expect([...oddSurroundings.keys()]).toEqual(Object.keys(scripts))
  })

  test.runIf(canMount).each(Object.entries(scripts))(
    '%s (needs unshare)',
    async (name, [program = '', ...under]) => {
      const user = new World()
      await user.spawn('create --id 1 --name Fern')
      const { exitCode, signal, stdout } = await startUnder(program, under, ['list'], user.home, {
        cwd: user.home,
      })
      const code = signal === 'SIGABRT' ? 134 : exitCode
      expect({ code: String(code), stdout }).toEqual({
        code: expect.toBeOneOf(oddSurroundings.get(name)?.split(' or ') ?? []),
        stdout: code === 0 ? '{"id":1,"name":"Fern"}\n' : '',
      })
    },
  )
})
