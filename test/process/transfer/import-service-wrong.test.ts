import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { allCreated, plantLines } from '../../helpers/import.js'
import { type Deed, PlantService, type Post } from '../../helpers/plant-service.js'
import { eachOnce, goOn, idOf, RemoteImport, remoteToken, teamSettings } from '../../helpers/remote-import.js'
import { addressOf, startService } from '../../helpers/service-process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const env = { PLANTS_SERVE_TOKEN: remoteToken }
const lines = plantLines(1000)
const once = eachOnce(lines)

describe('a service that is not what it should be', () => {
  const cases: [string, Deed, number, RegExp][] = [
    [
      'rejects the token',
      { status: 401, body: { error: 401, message: 'Who?' } },
      3,
      /Who\?.*\n {2}The token is from PLANTS_TOKEN/,
    ],
    [
      'redirects',
      { status: 307, headers: { Location: 'https://example.com/plants' } },
      4,
      /answered 307, and redirects to https:\/\/example/,
    ],
    [
      'says 404 for everything',
      { status: 404, body: { error: 404, message: 'Nothing here' } },
      1,
      /Nothing here.*\n {2}Is the address right\?/,
    ],
    [
      'answers with what is no plant',
      { status: 200, body: { ok: true } },
      5,
      /answered 200 with JSON that is no Plant/,
    ],
    ['fails with 500 for good', { status: 500, body: { error: 500, message: 'Oh' } }, 5, /failed: Oh/],
  ]

  test.each(cases.flatMap(([name, ...rest]) => [0, 700].map((start) => [name, start, ...rest] as const)))(
    'and %s after %i plants, ends the import, which goes on when that is mended',
    async (_, start, deed, code, words) => {
      let isMended = false
      const service = await PlantService.listen({ deed: ({ index }) => (index < start || isMended ? undefined : deed) })
      const run = new RemoteImport(lines, service.url, '--timeout', '1500ms')
      const result = await run.run()
      expect(result).toEqual({ code, counts: undefined, err: expect.stringMatching(words), journals: 1 })
      isMended = true
      expect(await run.run()).toMatchObject({ code: 0, counts: allCreated(lines.length), journals: 0 })
      expect(service.made).toEqual(once)
    },
  )

  test.each([
    ['whatever its service keeps', true],
    ['and nothing is unknown that was answered, or rejected, by one without keys', false],
  ])('says how to go on when it has ended in the middle, %s', async (_, isKeyed) => {
    let isMended = false
    const rows = new Map(lines.map((line, row) => [idOf(line), row]))
    const deed = ({ id }: Post): Deed => ((rows.get(id) ?? 0) < 700 || isMended ? undefined : { status: 404 })
    const service = await PlantService.listen({ isKeyed, deed })
    const run = new RemoteImport(lines, service.url)
    const result = await run.run()
    isMended = true
    const again = await run.run()
    expect([result, again]).toEqual([
      { code: 1, counts: undefined, err: expect.stringContaining(goOn), journals: 1 },
      {
        code: 0,
        counts: allCreated(lines.length),
        err: expect.stringMatching(/^plants: Resuming .* plants are done\n$/),
        journals: 0,
      },
    ])
    expect(service.made).toEqual(once)
  })

  test('is the real one with a wrong token', async () => {
    const address = await addressOf(startService(['--port', '0'], temporaryFolder(), { env }))
    const run = new RemoteImport(lines, address)
    expect(await run.runWith({ PLANTS_TOKEN: 's3cret-wrong' })).toMatchObject({ code: 3, counts: undefined })
    expect(await run.run()).toMatchObject({ code: 0, counts: allCreated(lines.length), journals: 0 })
  })
})

test('a token that expires in the middle is renewed by its command, and none is shown', async () => {
  const rejected: Deed = { status: 401, body: { error: 401, message: 'This token has expired' } }
  const service = await PlantService.listen({
    deed: ({ index, authorization }) =>
      authorization === `Bearer s3cret-${index < 500 ? 1 : 2}` || index > 1600 ? undefined : rejected,
  })
  const folder = teamSettings(service.url, 'echo run >> runs; echo "s3cret-$(wc -l < runs | tr -d " ")"')
  const run = new RemoteImport(lines, 'team', '--verbose')
  const { code, counts, err } = await run.runWith({ PLANTS_TOKEN: '', PLANTS_CONFIG_DIR: folder })
  expect({ code, counts, made: service.made }).toEqual({ code: 0, counts: allCreated(lines.length), made: once })
  expect(err).toContain('> authorization: Bearer ***\n')
  expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('run\nrun\n')
})
