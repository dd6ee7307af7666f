import { describe, expect, test } from 'vitest'
import { allCreated, digestOf, plantLines } from '../../helpers/import.js'
import { type Deed, PlantService, takeTime } from '../../helpers/plant-service.js'
import { plants } from '../../helpers/process.js'
import { eachOnce, RemoteImport, remoteToken } from '../../helpers/remote-import.js'
import { isSoak } from '../../helpers/rounds.js'
import { addressOf, startService } from '../../helpers/service-process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const env = { PLANTS_SERVE_TOKEN: remoteToken }
const lines = plantLines(1000)
const once = eachOnce(lines)

const busy: Deed = { status: 503, body: { error: 503, message: 'Not now' }, headers: { 'Retry-After': '1' } }

describe('a service in trouble', () => {
  test('that answers 503 for a while, then slowly, then well gets everything once', async () => {
    const many = plantLines(5000)
    const [busyFor, slowFor] = isSoak ? [10_000, 10_000] : [1500, 500]
    let start = Infinity
    const service = await PlantService.listen({
      async deed({ index, time }) {
        if (index === 2500) start = time
        const elapsed = time - start
        await takeTime(elapsed >= busyFor && elapsed < busyFor + slowFor ? 300 : 10)
        return elapsed >= 0 && elapsed < busyFor ? busy : undefined
      },
    })
    const result = await new RemoteImport(many, service.url).run()
    expect(result).toEqual({
      ...{ code: 0, counts: allCreated(many.length), journals: 0 },
      err: expect.stringMatching(/^(plants: Not now\. Trying again for up to \d+ s\n)?$/),
    })
    expect(service.made).toEqual(eachOnce(many))
  })

  test('that resets every tenth connection after it has stored the plant gets everything once', async () => {
    const service = await PlantService.listen({ deed: ({ index }) => (index % 10 === 9 ? 'lose' : undefined) })
    const result = await new RemoteImport(lines, service.url).run()
    expect(result).toEqual({ code: 0, counts: allCreated(lines.length), err: '', journals: 0 })
    expect(service.made).toEqual(once)
  })

  test('that is down is waited for', async () => {
    const home = temporaryFolder()
    const first = startService(['--port', '0'], home, { env })
    const address = await addressOf(first)
    first.kill('SIGKILL')
    await first
    const run = new RemoteImport(lines, address)
    const { child } = await run.startInVain('--retry', '2m')
    startService(['--port', new URL(address).port], home, { env })
    const { code, counts } = run.resultOf(await child)
    expect({ code, counts }).toEqual({ code: 0, counts: allCreated(lines.length) })
    expect(digestOf((await plants(['export'], home)).out)).toBe(digestOf(`${lines.join('\n')}\n`))
  })

  test('that is down from the start is told of while it is waited for', async () => {
    const service = await PlantService.listen()
    await service.close()
    const { code, err } = await new RemoteImport(lines, service.url, '--timeout', '5s').run()
    expect({ code, err }).toEqual({
      code: 4,
      err: expect.stringMatching(
        /^plants: Could not reach .*: the connection was refused\. Trying again for up to \d s\nplants: Could not reach/,
      ),
    })
  })

  test.each([
    ['from the start', 0],
    ['in the middle', 700],
  ])('that is down for good %s is given up, and the same command goes on when it is back', async (_, start) => {
    const service = await PlantService.listen({
      deed: async ({ index }) => {
        if (index === start && start > 0) await service.close()
        return undefined
      },
    })
    if (start === 0) await service.close()
    const run = new RemoteImport(lines, service.url, '--timeout', '2s')
    const down = await run.run()
    expect(down).toEqual({
      ...{ code: 4, counts: undefined, journals: start === 0 ? 0 : 1 },
      err: expect.stringMatching(
        /^(plants: .* Trying again .*\n)?plants: Could not reach .*: the connection was refused\n {2}Is it running\?.*\n$/,
      ),
    })
    await service.comeBack()
    expect(await run.run()).toMatchObject({ code: 0, counts: allCreated(lines.length), journals: 0 })
    expect(service.made).toEqual(once)
  })
})
