import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isWindows, World } from '../../helpers/world.js'

const hostile = [
  'x;touch pwned',
  "it's; touch pwned; '",
  '$(touch pwned)`touch pwned`',
  '-x & touch pwned',
  '"|touch pwned|"',
  "x\n'; touch pwned; '",
]

/** A command line, the word that its hint must name, and the folder of the settings if it is another. */
type Made = [args: string[], word: string, config?: string]

const service = 'https://plants.example.com'
const fern = ['create', '--id', '1', '--name', 'x']

/** What a hint is about, what is in front of its command, and what makes it with a hostile text. */
const cases: [string, string, (user: World, text: string) => Made | Promise<Made>][] = [
  [
    'a store',
    'with: ',
    async (user, text) => {
      await user.run([...fern, `--store=./${text}.db`])
      return [['delete', '7', '--yes', `--store=./${text}.db`], `./${text}.db`]
    },
  ],
  [
    'a folder that does not exist',
    'with: ',
    ({ home }, text) => [['export', `./${text}/a.csv`], join(home, text)],
  ],
  [
    'settings that are open to others',
    'with: ',
    (user, text) => {
      const file = join(user.home, user.write(`${text}/settings.json`, '{"version":1}'))
      chmodSync(file, 0o644)
      return [['config', 'list'], file, join(user.home, text)]
    },
  ],
  [
    'the name of a store',
    'Remove it: ',
    (user, text) => {
      const name = text.replaceAll('.', '')
      const tokens = { [service]: { token: 's3cret-token', savedAt: '' } }
      user.save({ stores: { [name]: { address: service } }, tokens })
      return [['stores', 'remove', '--', name], service]
    },
  ],
]
test.skipIf(isWindows).each(cases.map((entry, index) => [...entry, index] as const))(
  'a command in a hint about %s names what is meant, and runs nothing else (needs sh)',
  async (_, before, make, index) => {
    for (const text of hostile.filter((_, at) => at === 0 || at % cases.length === index)) {
      const user = new World()
      await user.run('create --id 1 --name Fern')
      const [[command = '', ...args], word, config] = await make(user, text)
      const env = config === undefined ? {} : { PLANTS_CONFIG_DIR: config }
      const { err } = await user.run([command, '--output', 'json', ...args], { env })
      const said = JSON.parse(err.trimEnd().split('\n').at(-1) ?? '{}')
      const hint = String(said.hint ?? said.warning ?? said.kept)
      expect(hint).toContain(before)
      const old = readdirSync(user.home)
      const words = wordsOf(hint.slice(hint.lastIndexOf(before) + before.length))
      const made = readdirSync(user.home).filter((name) => !old.includes(name))
      const all = [...words, ...made.map((name) => join(user.home, name))]
      expect({ text, all }).toEqual({ text, all: expect.arrayContaining([word]) })
    }
  },
)

/** The words that a command gives to programs, in an empty folder with no other program. */
function wordsOf(command: string): string[] {
  const user = new World()
  const place = join(user.home, 'place')
  mkdirSync(place)
  const record = join(user.home, user.write('record', ''))
  for (const name of ['plants', 'chmod', 'mkdir'])
    user.write(`programs/${name}`, `#!/bin/sh\nprintf '%s\\0' "$@" >> '${record}'\n`, 0o700)
  user.write('programs/touch', `#!/bin/sh\n: > '${place}/pwned'\n`, 0o700)
  user.write('place/FILE', '')
  const options = { cwd: place, env: { PATH: join(user.home, 'programs') } }
  const { stderr } = spawnSync('/bin/sh', ['-c', command], options)
  expect({ command, err: `${stderr}`, files: readdirSync(place) }).toEqual({
    command,
    err: '',
    files: ['FILE'],
  })
  return readFileSync(record, 'utf8').split('\0')
}
