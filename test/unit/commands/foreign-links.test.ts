import {
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { refusal, World } from '../../helpers/world.js'

const stranger = 1234
/** A record that is rejected. */
const refused = '{"id":"x","name":"ssh-ed25519 AAAA"}\n'
const isRoot = process.getuid?.() === 0

/** A link in a folder that others may use as well, of this user or of another one. */
function linkAt(path: string, target: string, uid = stranger): string {
  symlinkSync(target, path)
  lchownSync(path, uid, uid)
  return path
}

async function userWithPlant(): Promise<World> {
  const user = new World()
  await user.run('create --id 1 --name Fern')
  mkdirSync(join(user.home, 'shared'))
  writeFileSync(join(user.home, 'victim'), 'mine')
  writeFileSync(join(user.home, 'broken.ndjson'), refused)
  return user
}

describe.skipIf(!isRoot)(
  `a link of another user is not followed to write${isRoot ? '' : ' (skipped: needs root)'}:`,
  () => {
    const rejects = (path: string) => `import broken.ndjson --rejects ${path}`
    const reasons = (path: string) => `import broken.ndjson --rejects ${path.replace('.reasons', '')}`
    const out = (path: string) => `export --out ${path}`

    test.each<[string, string, (path: string) => string]>([
      ['--rejects', 'link', rejects],
      ['the reasons beside --rejects', 'link.reasons', reasons],
      ['export --out', 'link', out],
      ['export --out, compressed', 'link.csv.gz', out],
    ])('%s', async (_, name, command) => {
      const user = await userWithPlant()
      for (const target of ['../victim', '../new', '/dev/null', '../pipe']) {
        const path = linkAt(join(user.home, 'shared', name), target)
        const before = readdirSync(user.home).filter((name) => name !== 'state')
        const { code, err } = await user.run(`${command(path)} --output json`)
        const last = JSON.parse(err.trimEnd().split('\n').at(-1) ?? '')
        expect({ code, ...last }).toEqual({
          ...{
            code: 2,
            error: 400,
            message: `${path} is a link of another user (uid ${stranger}), and is not followed`,
          },
          hint: 'Name another file, or remove the link',
        })
        const after = readdirSync(user.home).filter((name) => name !== 'state')
        expect([readFileSync(join(user.home, 'victim'), 'utf8'), after]).toEqual(['mine', before])
        expect(readlinkSync(path)).toBe(target)
        rmSync(path, { force: true })
      }
    })

    test('backup', async () => {
      const user = await userWithPlant()
      await user.run('backup old.bak')
      const old = readFileSync(join(user.home, 'old.bak'))
      await user.run('create --id 2 --name Moss')
      for (const target of ['../old.bak', '../new', '../missing/new']) {
        const path = linkAt(join(user.home, 'shared/link'), target)
        const before = readdirSync(user.home)
        expect(await user.run(`backup ${path}`)).toEqual(
          refusal(
            `${path} is a link of another user (uid ${stranger}), and is not followed`,
            'Name another file, or remove the link',
          ),
        )
        expect([readFileSync(join(user.home, 'old.bak')).equals(old), readdirSync(user.home)]).toEqual([true, before])
        expect(readlinkSync(path)).toBe(target)
        rmSync(path, { force: true })
      }
    })

    test('one that a link of this user leads to', async () => {
      const user = await userWithPlant()
      const theirs = linkAt(join(user.home, 'shared/theirs'), '../new')
      const path = linkAt(join(user.home, 'mine'), 'shared/theirs', 0)
      for (const command of [rejects(path), out(path), `backup ${path}`]) {
        const { code, err } = await user.run(command)
        expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(`${theirs} is a link of another user`) })
      }
      expect(existsSync(join(user.home, 'new'))).toBe(false)
    })
  },
)

test('a link of this user stays one, and what it leads to is written', async () => {
  const user = await userWithPlant()
  for (const [command, text] of [
    ['export --out', '{"id":1,"name":"Fern"}\n'],
    ['import broken.ndjson --rejects', refused],
  ]) {
    const path = join(user.home, 'shared/link')
    symlinkSync('../new', path)
    await user.run(`${command} ${path}`)
    expect([readlinkSync(path), readFileSync(join(user.home, 'new'), 'utf8')]).toEqual(['../new', text])
    for (const name of ['shared/link', 'shared/link.reasons', 'new']) rmSync(join(user.home, name), { force: true })
  }
})

test('a link to a rejects file that stays empty is left, and the file removed', async () => {
  const user = await userWithPlant()
  writeFileSync(join(user.home, 'two.ndjson'), '{"id":2,"name":"Moss"}\n')
  symlinkSync('new', join(user.home, 'link'))
  expect((await user.run('import two.ndjson --rejects link')).code).toBe(0)
  expect([readlinkSync(join(user.home, 'link')), existsSync(join(user.home, 'new'))]).toEqual(['new', false])
})

test('a backup by way of a link of this user is made where that leads, and the link stays', async () => {
  const user = await userWithPlant()
  symlinkSync('../new', join(user.home, 'shared/link'))
  expect(await user.run('backup shared/link')).toMatchObject({ code: 0, err: '' })
  expect(readlinkSync(join(user.home, 'shared/link'))).toBe('../new')
  expect((await user.run('list --store ./new')).out).toBe('{"id":1,"name":"Fern"}\n')
})
