import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { allCreated, plantLines, writeLines } from '../../helpers/import.js'
import { PlantService } from '../../helpers/plant-service.js'
import { bin } from '../../helpers/process.js'
import { eachOnce, RemoteImport, remoteToken } from '../../helpers/remote-import.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const lines = plantLines(600)

describe('the flags of an import into a service', () => {
  test('--concurrency is a limit', async () => {
    const service = await PlantService.listen()
    const result = await new RemoteImport(lines.slice(0, 300), service.url, '--concurrency', '3').run()
    expect(result).toMatchObject({ code: 0, counts: allCreated(300) })
    expect(service.mostUnderWay).toBeLessThanOrEqual(3)
    expect(service.mostConnections).toBeLessThanOrEqual(4) // one asks for keys
  })

  test('--dry-run sends nothing, and says what it cannot know', async () => {
    const service = await PlantService.listen()
    const run = new RemoteImport([...lines, lines[0] ?? '', 'bad'], service.url, '--dry-run')
    expect(await run.run()).toEqual({
      ...{
        code: 6,
        counts: { created: lines.length, skipped: 0, rejected: 2, reasons: { 400: 1, 409: 1 }, unknown: 0 },
        journals: 0,
      },
      err: expect.stringContaining(`plants: Only the input is checked, not which ids exist at ${service.url}\n`),
    })
    expect(service.posts).toEqual([])
  })

  test('--if-exists skip counts what is there as done', async () => {
    const service = await PlantService.listen()
    await new RemoteImport(lines.slice(0, 300), service.url).run()
    const result = await new RemoteImport(lines, service.url, '--if-exists', 'skip').run()
    expect(result).toEqual({ code: 0, counts: { ...allCreated(300), skipped: 300 }, err: '', journals: 0 })
    expect(service.made).toEqual(eachOnce(lines))
  })

  test('--if-exists same, --id-from next and --atomic are rejected before anything is sent', async () => {
    const service = await PlantService.listen()
    for (const [flags, err] of [
      [
        ['--if-exists', 'same'],
        'plants: This service can only create plants: its openapi.json lists no GET /plants/{id}',
      ],
      [['--id-from', 'next'], 'plants: This service can only create plants: its openapi.json lists no GET /plants\n'],
      [['--atomic'], 'plants: --atomic is not supported at'],
    ] as const) {
      const result = await new RemoteImport(lines, service.url, ...flags).run()
      expect(result).toEqual({ code: 2, counts: undefined, err: expect.stringContaining(err), journals: 0 })
    }
    expect(service.posts).toEqual([])
  })

  test('--max-errors creates nothing after the record that the service rejects', async () => {
    const service = await PlantService.listen()
    await new RemoteImport([lines[300] ?? ''], service.url).run()
    await new RemoteImport(lines, service.url, '--max-errors', '1').run()
    expect(service.made).toEqual(eachOnce(lines.slice(0, 301)))
  })

  test('--max-errors stops soon after so many were rejected, by the service too, and goes on behind them', async () => {
    const service = await PlantService.listen()
    const many = plantLines(6000)
    await new RemoteImport(many.slice(100, 200), service.url).run()
    const run = new RemoteImport(many, service.url)
    const stopped = await run.run('--max-errors', '10')
    expect(stopped).toMatchObject({
      code: 6,
      journals: 1,
      err: expect.stringContaining('were rejected, and the import stopped there\n'),
    })
    expect(service.posts.length).toBeLessThan(100 + 3000)
    const counts = { ...allCreated(5900), rejected: 100, reasons: { 409: 100 } }
    expect(await run.run('--max-errors', '1000')).toMatchObject({ code: 6, counts, journals: 0 })
    expect(service.made).toEqual(eachOnce(many))
  })

  test('what is rejected is told soon', async () => {
    const service = await PlantService.listen()
    const child = new RemoteImport(['bad', ...plantLines(6000)], service.url).start()
    let before = NaN
    child.stderr?.once('data', () => {
      before = service.posts.length
    })
    expect((await child).exitCode).toBe(6)
    expect(before).toBeLessThan(3000)
  })

  test('--verbose does not wait for whoever reads it', async () => {
    const service = await PlantService.listen()
    const folder = temporaryFolder()
    const path = writeLines(folder, lines)
    const variables = { PATH: process.env['PATH'], HOME: folder, PLANTS_TOKEN: remoteToken }
    const child = spawn(bin, ['import', path, '--store', service.url, '--verbose'], {
      env: variables,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    expect(await once(child, 'exit')).toEqual([0, null])
    child.stderr.destroy()
    expect(service.made).toEqual(eachOnce(lines))
  })
})
