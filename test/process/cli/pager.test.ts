import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Hostile, json } from '../../helpers/hostile.js'
import { token } from '../../helpers/http-store.js'
import { bin } from '../../helpers/process.js'
import { isHere } from '../../helpers/programs.js'
import { terminalFor } from '../../helpers/terminal.js'
import { World } from '../../helpers/world.js'

const less = { PAGER: 'less' }
const prompt = ':\u001b[K'

async function withPlants(count: number): Promise<World> {
  const user = new World()
  const input = Array.from(
    { length: count },
    (_, index) => `{"id":${index + 1},"name":"Plant"}`,
  ).join('\n')
  expect((await user.spawn('import -', { input })).code).toBe(0)
  return user
}

/** The lines that are not empty, without the spaces in front of them. */
function lines(screen: string): string[] {
  return stripVTControlCharacters(screen)
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

describe.skipIf(!isHere('less'))('in less (needs less)', () => {
  test('q ends a list quietly, with exit code 0', async () => {
    const session = (await withPlants(20_000)).terminal('list', less)
    await session.answer([prompt, 'q'])
    const { code, screen } = await session.ended
    expect([code, screen]).toEqual([0, expect.not.stringContaining('plants:')])
    expect(lines(screen)).toContain('22  Plant')
    expect(lines(screen)).not.toContain('23  Plant')
  })

  test('a list that fits the screen ends at once, with its colours', async () => {
    const { code, screen } = await (await withPlants(2)).terminal('list --search plant', less).ended
    expect(code).toBe(0)
    expect(screen).toContain('\u001b[2mID  NAME   TAG')
    expect(lines(screen)).toEqual(['ID  NAME   TAG', '1  Plant', '2  Plant'])
  })

  test.each(['C', 'en_US.UTF-8'])(
    'a name is shown in its letters, whatever the locale: %s',
    async (locale) => {
      const user = await withPlants(1)
      await user.spawn('create --id 2 --name Ähre')
      const { screen } = await user.terminal('list', { ...less, LC_ALL: locale }).ended
      expect(lines(screen)).toEqual(['ID  NAME   TAG', '1  Plant', '2  Ähre'])
    },
  )

  const page = Array.from({ length: 300 }, (_, index) => ({ id: index + 1, name: 'Plant' }))
  const firstPage = json(200, page, { Link: '</plants?after=300>; rel="next"' })

  test('q ends a list whose next page does not come', async () => {
    const service = await Hostile.listen({
      others: { 'GET /plants': [firstPage, () => undefined] },
    })
    const env = { ...less, PLANTS_TOKEN: token }
    const session = new World().terminal(`list --timeout 1h --store ${service.url}`, env)
    await session.answer([prompt, 'q'])
    expect(await session.ended).toMatchObject({
      code: 0,
      screen: expect.not.stringContaining('plants:'),
    })
    expect(service.lines).toEqual(['GET /plants?limit=1000', 'GET /plants?after=300'])
  })

  test('a failure is reported after the plants before it', async () => {
    const failure = json(400, { error: 400, message: 'Too many pages' })
    const service = await Hostile.listen({ others: { 'GET /plants': [firstPage, failure] } })
    const session = new World().terminal(`list --store ${service.url}`, {
      ...less,
      PLANTS_TOKEN: token,
    })
    await session.answer([prompt, 'G'], ['(END)', 'q'], ['Too many pages', ''])
    expect(await session.ended).toMatchObject({ code: 1 })
  })

  test('the help of a command is longer than the screen', async () => {
    const session = new World().terminal('import --help', less)
    await session.answer(
      ['Usage: plants import', ''],
      [prompt, 'G'],
      ['Global options: plants --help', 'q'],
    )
    expect(await session.ended).toMatchObject({ code: 0 })
  })
})

describe.skipIf(process.platform === 'win32')('another pager', () => {
  test.each([2, 20_000])(
    'where its shell does not find it, a list of %i is printed all the same',
    async (count) => {
      const user = await withPlants(count)
      // A terminal whose program ends is closed soon, whether or not all of it was read.
      const env = {
        ...user.env,
        PATH: process.env['PATH'] ?? '',
        HOME: user.home,
        PAGER: 'no-such-pager "x"',
      }
      const session = terminalFor(
        'sh',
        ['-c', `${bin} list --no-color; echo code $?; read line`],
        user.home,
        env,
      )
      await session.see('code 0')
      const { screen } = session
      session.type('\r')
      await session.ended
      expect(lines(screen).filter((line) => /^\d+ +Plant$/.test(line))).toHaveLength(count)
    },
  )

  test('where the pager is missing, a list is printed as it is', async () => {
    const { code, screen } = await (await withPlants(2)).terminal('list --no-color', {
      PAGER: 'no-such-pager -R',
    }).ended
    expect([code, screen]).toEqual([0, 'ID  NAME   TAG\r\n 1  Plant\r\n 2  Plant\r\n'])
  })

  test('a script is the pager, with its words', async () => {
    const user = await withPlants(2)
    user.write('pager', '#!/bin/sh\nexec sed "s/^/$1$2 /"\n', 0o700)
    for (const words of ['a b', '"a" $(echo b)']) {
      const { code, screen } = await user.terminal('list --no-color', {
        PAGER: `${user.home}/pager ${words}`,
      }).ended
      expect([code, screen]).toEqual([0, 'ab ID  NAME   TAG\r\nab  1  Plant\r\nab  2  Plant\r\n'])
    }
  })

  test('Ctrl-C stops the list, and is left to the pager; the exit code is 130', async () => {
    const user = await withPlants(20_000)
    const script = `#!/usr/bin/env node
    process.on('SIGINT', () => {
      console.log('interrupted')
      process.stdin.on('end', () => process.exit()).resume()
    })
    console.log('ready')
    setInterval(() => {}, 1000)`
    user.write('pager', script, 0o700)
    const session = user.terminal('list', { PAGER: `${user.home}/pager` })
    await session.see('ready')
    await session.answer(['', '\x03'], ['interrupted', ''])
    const { code, screen } = await session.ended
    expect([code, screen]).toEqual([130, expect.not.stringContaining('plants:')])
  })
})
