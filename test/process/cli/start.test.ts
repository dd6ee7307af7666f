import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { version } from '../../../package.json'
import { Sandbox, toJsonResult, toTextResult } from '../../helpers/sandbox/sandbox.js'

const fern = 'create --id 1 --name Fern'

describe.skipIf(process.env['PLANTS_BIN'] !== undefined)(
  'on a simulated version of Node.js (needs Node as its runtime)',
  () => {
    /** Starts the program there. */
    function startOn(pretended: string, line: string) {
      const user = new Sandbox()
      const versions = `{ ...process.versions, node: '${pretended}' }`
      user.write(
        'version.cjs',
        `Object.defineProperty(process, 'versions', { value: ${versions} })`,
      )
      return user.spawn(line, { env: { NODE_OPTIONS: '--require ./version.cjs' } })
    }

    test.each(['18.20.8', '20.18.3', '8.17.0'])(
      'the version %s is rejected as too old',
      async (old) => {
        const err = `plants needs Node.js 20.19 or newer; this is ${old}\n`
        for (const line of ['--version', fern])
          expect(await startOn(old, line)).toEqual({ code: 70, out: '', err })
      },
    )

    test.each(['20.19.0', '21.0.0', '100.1.2'])('the version %s is accepted', async (known) => {
      expect(await startOn(known, '--version')).toEqual(toTextResult(`${version}\n`))
    })
  },
)

test('an internal error exits with 70, and prints its stack', async () => {
  const user = new Sandbox()
  const fault = "process.getBuiltinModule = process.dlopen = () => { throw new TypeError('boom') }"
  user.write('boom.cjs', fault)
  const env = { NODE_OPTIONS: '--require ./boom.cjs', BUN_OPTIONS: '--preload ./boom.cjs' }
  const { code, out, err } = await user.spawn(fern, { env })
  expect([code, out]).toEqual([70, ''])
  expect(err).toMatch(/\n {2}TypeError: boom\n(?: {6}at .*\n)* {6}at loadDriver \(/)
})

test.each([
  ['backup', 'postgres://ann:secret@db.example/garden'],
  [
    'serve',
    '--tls-cert',
    'cert.pem',
    '--tls-key',
    'Bag Attributes\n-----BEGIN PRIVATE KEY-----\nsecret',
  ],
])(
  'an error does not repeat a URL or a key that stands in the place of a path: plants %s',
  async (...words) => {
    const err =
      'plants: A path is expected, but this is a URL or PEM text\n  Give the path of a file\n'
    const user = new Sandbox()
    await user.spawn(fern)
    await user.spawn('tokens create')
    expect(await user.spawn(words)).toEqual({ code: 2, out: '', err })
  },
)

test('configuration files of runtimes and tools in the current directory have no effect', async () => {
  const user = new Sandbox()
  const settings = 'PLANTS_STORE=/nonexistent/plants.db\nPLANTS_OUTPUT=text\n'
  for (const name of ['.env', '.env.local', '.env.production']) user.write(name, settings)
  user.write('preload.cjs', 'require("node:fs").writeFileSync("loaded", ""); console.log("loaded")')
  user.write('bunfig.toml', 'preload = ["./preload.cjs"]\n')
  user.write('tsconfig.json', '{')
  user.write('package.json', '{"name":"plants","type":"module","imports":{"#*":"./preload.cjs"}}')
  const before = readdirSync(user.home)
  expect(await user.spawn(fern)).toEqual(toJsonResult({ name: 'Fern' }))
  expect(readdirSync(user.home).filter((name) => !before.includes(name))).toEqual(['data'])
})
