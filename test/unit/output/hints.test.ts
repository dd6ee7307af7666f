import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as zlib from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../helpers/temporary.js'
import { World } from '../../helpers/world.js'

const hostile = [
  'x;touch pwned',
  "it's; touch pwned; '",
  '$(touch pwned)`touch pwned`',
  'a b  c',
  '-x & touch pwned',
  '=ls',
  'a~root ~',
  '"|touch pwned|"',
  "x\n'; touch pwned; '",
]
const hasZstd = 'createZstdDecompress' in zlib

interface Made {
  argv: string[]
  word: string
  env?: Record<string, string>
}

interface Case {
  name: string
  /**
   * makes what the hint is about, and gives the command line, and the path or word that stands in the command of the
   * hint
   */
  make(user: World, text: string): Made | Promise<Made>
  /** what stands in front of the command */
  before: string
  isSkipped?: boolean
}

const cases: Case[] = [
  {
    name: 'what unpacks an input',
    make: (user, text) => {
      writeFileSync(join(user.home, `${text}.zst`), Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0]))
      return { argv: ['import', '--', `${text}.zst`], word: `${text.startsWith('-') ? './' : ''}${text}.zst` }
    },
    before: ' of: ',
    isSkipped: hasZstd,
  },
  {
    name: 'a store',
    make: async (user, text) => {
      await user.run(['create', '--id', '1', '--name', 'x', `--store=./${text}.db`])
      return { argv: ['delete', '7', '--yes', `--store=./${text}.db`], word: `./${text}.db` }
    },
    before: 'with: ',
  },
  {
    name: 'a folder that is not there',
    make: (user, text) => ({
      argv: ['create', '--id', '1', '--name', 'x', `--store=./${text}/a.db`],
      word: join(user.home, text),
    }),
    before: 'with: ',
  },
  {
    name: 'settings that are open to others',
    make: (user, text) => {
      const folder = join(user.home, text)
      mkdirSync(folder, { mode: 0o700 })
      writeFileSync(join(folder, 'settings.json'), '{"version":1}')
      chmodSync(join(folder, 'settings.json'), 0o644)
      return { argv: ['config', 'list'], word: join(folder, 'settings.json'), env: { PLANTS_CONFIG_DIR: folder } }
    },
    before: 'with: ',
  },
  {
    name: 'a rejects file',
    make: (user, text) => {
      writeFileSync(join(user.home, 'in.ndjson'), '{"id":"x"}\n')
      return { argv: ['import', 'in.ndjson', `--rejects=${text}`], word: join(user.home, text) }
    },
    before: 'then: ',
  },
  {
    name: 'a service at a socket',
    make: (_, text) => ({ argv: ['auth', 'login', `--store=unix:./${text}`], word: `unix:./${text}` }),
    before: 'stdin: ',
  },
  {
    name: 'a setting of a store that a hand has written',
    make: (user, text) => {
      const name = text.replaceAll('.', '')
      user.save({ stores: { [name]: { address: 'https://plants.example.com', 'ca-cert': '/ca.pem' } } })
      return { argv: ['config', 'set', `stores.${name}.address`, './a.db'], word: `stores.${name}.ca-cert` }
    },
    before: 'first: ',
  },
  {
    name: 'a store that a hand has written',
    make: (user, text) => {
      const name = text.replaceAll('.', '')
      user.save({ stores: { [name]: { address: 'https://plants.example.com' } } })
      return { argv: ['config', 'unset', `stores.${name}.address`], word: name }
    },
    before: 'store: ',
  },
]

describe.each(cases.map((entry, index) => ({ ...entry, index })))(
  'a command in a hint names what is meant, and runs nothing else: $name',
  ({ make, before, index, isSkipped = false }) => {
    test.skipIf(isSkipped)(`in sh${isSkipped ? ' (needs a Node without zstd)' : ''}`, async () => {
      for (const text of hostile.filter((_, at) => at === index % hostile.length || at === 0)) {
        const user = new World()
        await user.run('create --id 1 --name Fern')
        const { argv, word, env = {} } = await make(user, text)
        const { err } = await user.run([...argv.slice(0, 1), '--output', 'json', ...argv.slice(1)], { env })
        const said = JSON.parse(err.trimEnd().split('\n').at(-1) ?? '{}')
        const hint = String(said.hint ?? said.warning ?? said.kept)
        expect(hint).toContain(before)
        const command = hint.slice(hint.lastIndexOf(before) + before.length)
        const old = readdirSync(user.home)
        const words = wordsOf(command)
        const made = readdirSync(user.home).filter((name) => !old.includes(name))
        expect({ text, words: [...words, ...made.map((name) => join(user.home, name))] }).toEqual({
          text,
          words: expect.arrayContaining([word]),
        })
      }
    })
  },
)

test('a value that begins with a dash is stored as it is', async () => {
  const dashed = hostile.filter((word) => word.startsWith('-'))
  expect(dashed).not.toEqual([])
  for (const name of dashed) {
    const { code, out } = await new World().run(['create', '--id', '1', '--name', name])
    expect({ code, plant: JSON.parse(out) }).toEqual({ code: 0, plant: { name } })
  }
})

/** The words that programs are given by a command, in an empty folder with no other program. */
function wordsOf(command: string): string[] {
  const folder = temporaryFolder()
  const [programs, place] = [join(folder, 'programs'), join(folder, 'place')]
  for (const made of [programs, place]) mkdirSync(made)
  const record = join(folder, 'record')
  for (const name of ['plants', 'zstd', 'chmod', 'mkdir']) {
    writeFileSync(join(programs, name), `#!/bin/sh\nprintf '%s\\0' "$@" >> '${record}'\n`, { mode: 0o755 })
  }
  writeFileSync(join(programs, 'touch'), `#!/bin/sh\n: > '${place}/pwned'\n`, { mode: 0o755 })
  writeFileSync(record, '')
  writeFileSync(join(place, 'FILE'), '')
  const { stderr } = spawnSync('/bin/sh', ['-c', command], { cwd: place, env: { PATH: programs } })
  expect({ command, err: stderr.toString(), isHarmless: !readdirSync(place).includes('pwned') }).toEqual({
    command,
    err: '',
    isHarmless: true,
  })
  return readFileSync(record, 'utf8').split('\0')
}
