import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Hostile } from '../../helpers/hostile.js'
import { Person, service } from '../../helpers/person.js'
import { plants } from '../../helpers/process.js'
import { token } from '../../helpers/remote.js'
import { posts, sh, Team } from '../../helpers/team.js'
import { terminal } from '../../helpers/terminal.js'

describe('a token command on a terminal', () => {
  async function asking(...flags: string[]) {
    const team = new Team()
    const remote = await Hostile.listen({ posts })
    const asks = "printf 'PIN: ' > /dev/tty; read -r pin < /dev/tty; echo s3cret-$pin"
    team.takes(team.program('asks', sh(asks)), remote.url)
    const typing = terminal(['create', '--store', 'team', '--no-color', ...flags], team.folder, {
      PLANTS_CONFIG_DIR: team.folder,
    })
    await typing.see('PIN: ')
    return { typing, remote }
  }

  test.each<[when: string, flags: string[], dialogue: [question: string, text: string][]]>([
    [
      'before the questions for the plant',
      [],
      [
        ['id', '1\r'],
        ['name', 'Fern\r'],
        ['tag', '\r'],
      ],
    ],
    ['before the request', ['--id', '1', '--name', 'Fern'], []],
  ])('may ask there, %s', async (_, flags, dialogue) => {
    const { typing, remote } = await asking(...flags)
    typing.type('1234\r')
    await typing.answer(...dialogue)
    await typing.see('Planted Fern')
    expect((await typing.ended).code).toBe(0)
    expect(remote.posts.map(({ headers, body }) => [headers['authorization'], body])).toEqual([
      ['Bearer s3cret-1234', '{"id":1,"name":"Fern"}'],
    ])
  })

  test('ends with the program at Ctrl-C', async () => {
    const { typing, remote } = await asking('--id', '1', '--name', 'Fern')
    typing.type('\x03')
    const { code, screen } = await typing.ended
    expect({ code, screen, connections: remote.connections }).toEqual({
      ...{ code: 130, connections: 0 },
      screen: expect.stringContaining('plants: Interrupted'),
    })
  })

  test('is run before anything is asked, and once', async () => {
    const address = await service()
    const person = new Person()
    await person.piped(`stores add team ${address}`)
    await takeTokenFrom(person, `echo ran >&2; echo ${token}`)
    const session = person.session('create --store team')
    await session.see('ran')
    await session.answer(['id', '1\r'], ['name', 'Fern\r'], ['tag', '\r'])
    const { code, screen } = await session.ended
    expect({ code, count: screen.match(/ran/g)?.length }).toEqual({ code: 0, count: 1 })
    expect(screen).not.toContain(token)
  })

  test('that fails is named, with what it said itself', async () => {
    const person = new Person()
    await person.piped('stores add team https://plants.example.com')
    await takeTokenFrom(person, `echo The vault is locked >&2; echo ${token}; exit 4`)
    const { code, lines } = await person.at('create --store team --id 1 --name Fern')
    expect(code).toBe(3)
    expect(lines).toEqual([
      'The vault is locked',
      'plants: The token command of team (/bin/sh) ended with exit code 4',
      expect.stringMatching(/^ {2}\S/),
    ])
  })
})

/** Lets the store `team` take its token from a script. */
async function takeTokenFrom(person: Person, script: string): Promise<void> {
  const path = join(person.folder, 'token.sh')
  writeFileSync(path, script)
  const argv = ['config', 'set', 'stores.team.token-command', `/bin/sh ${path}`]
  expect((await plants(argv, person.folder, { env: { PLANTS_CONFIG_DIR: person.config } })).code).toBe(0)
}
