import { statSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Person, service, typeToken } from '../../helpers/person.js'
import { token } from '../../helpers/remote.js'

describe('the life of a token', () => {
  test('on a terminal', async () => {
    const address = await service()
    const person = new Person()
    const how = 'Use it with --store team, or make it the default: plants stores use team'
    expect(await person.at(`stores add team ${address}`)).toEqual({
      code: 0,
      lines: [`Saved the store team, ${address}. ${how}`],
    })
    expect(await person.at('stores use team')).toEqual({ code: 0, lines: ['Set store to team'] })
    const none = [`plants: There is no token for ${address}`, '  Set PLANTS_TOKEN, or save one with: plants auth login']
    expect(await person.at('create --id 1 --name Fern')).toEqual({ code: 3, lines: none })

    const login = await typeToken(person.session('auth login'), address, token)
    expect({ code: login.code, last: login.lines.at(-1) }).toEqual({
      code: 0,
      last: `Saved the token for team (${address}), which accepts it`,
    })
    expect(statSync(person.file).mode & 0o777).toBe(0o600)

    expect(await person.at('create --id 1 --name Fern')).toEqual({ code: 0, lines: ['Planted Fern (id 1)'] })
    const status = await person.at('auth status')
    const saved = new RegExp(`^team \\(${address}\\): saved on \\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\dZ in ${person.file}$`)
    expect(status).toEqual({ code: 0, lines: [expect.stringMatching(saved)] })
    expect(await person.at('auth token')).toEqual({ code: 0, lines: [token] })

    expect(await person.at('auth logout')).toEqual({ code: 0, lines: [`Removed the token for team (${address})`] })
    expect(person.kept).not.toContain(token)
    expect(await person.at('create --id 2 --name Moss')).toEqual({ code: 3, lines: none })
    expect(await person.at('create')).toEqual({ code: 3, lines: none }) // before somebody answers for nothing
    expect(await person.at('auth status')).toEqual({ code: 3, lines: [`team (${address}): no token`, ...none] })
    expect(await person.at('auth logout')).toEqual({
      code: 0,
      lines: [`There was no saved token for team (${address})`],
    })
    const removed = await person.at('stores remove team')
    const rest = 'The default store is now local'
    expect(removed).toEqual({ code: 0, lines: [`Removed the store team. Its plants are still in ${address}. ${rest}`] })
  })

  test('in pipes', async () => {
    const address = await service()
    const person = new Person()
    const names = { store: 'team', address }
    const said = async (line: string, input?: string) => {
      const { code, out, err } = await person.piped(line, input)
      return { code, out: out.split('\n').filter(Boolean).map(parsed), err }
    }
    expect(await said(`stores add team ${address}`)).toEqual({ code: 0, out: [{ name: 'team', address }], err: '' })
    expect(await said('stores use team')).toEqual({ code: 0, out: [{ name: 'store', value: 'team' }], err: '' })
    const none = `plants: There is no token for ${address}\n  Set PLANTS_TOKEN, or save one with: plants auth login\n`
    expect(await said('create --id 1 --name Fern')).toEqual({ code: 3, out: [], err: none })

    const savedAt = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const login = await said('auth login --with-token', `${token}\n`)
    expect(login).toEqual({ code: 0, out: [{ ...names, source: 'file', savedAt, checked: true }], err: '' })
    expect(await said('create', '{"id":1,"name":"Fern"}')).toEqual({ code: 0, out: [{ name: 'Fern' }], err: '' })
    expect(await said('auth status')).toEqual({ code: 0, out: [{ ...names, source: 'file', savedAt }], err: '' })
    expect(await said('auth token')).toEqual({ code: 0, out: [token], err: '' })

    expect(await said('auth logout')).toEqual({ code: 0, out: [{ ...names, removed: true }], err: '' })
    expect(person.kept).not.toContain(token)
    expect(await said('create --id 2 --name Moss')).toEqual({ code: 3, out: [], err: none })
    expect(await said('auth status')).toEqual({ code: 3, out: [{ ...names, source: 'none' }], err: none })
    expect(await said('auth logout')).toEqual({ code: 0, out: [{ ...names, removed: false }], err: '' })
    const removal = { name: 'team', address, removed: true, tokenRemoved: false }
    expect(await said('stores remove team')).toEqual({ code: 0, out: [removal], err: '' })
    expect(await said('stores list')).toMatchObject({ code: 0, out: [{ name: 'local', inUse: true }], err: '' })
  })

  test('ends with its store', async () => {
    const address = await service()
    const person = new Person()
    await person.piped(`stores add team ${address}`)
    await person.piped('auth login --store team --with-token', token)
    const { code, out } = await person.piped('stores remove team')
    expect({ code, ...JSON.parse(out) }).toEqual({ code: 0, name: 'team', address, removed: true, tokenRemoved: true })
    expect(person.kept).not.toContain(token)
  })
})

function parsed(line: string): unknown {
  return line.startsWith('{') ? JSON.parse(line) : line
}
