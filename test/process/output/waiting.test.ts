import { expect, test } from 'vitest'
import { Hostile, json } from '../../helpers/hostile.js'
import { plantLines } from '../../helpers/import.js'
import { PlantService, takeTime } from '../../helpers/plant-service.js'
import { plants } from '../../helpers/process.js'
import { token } from '../../helpers/remote.js'
import { RemoteImport } from '../../helpers/remote-import.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

const create = ['create', '--id', '1', '--name', 'Fern', '--store']
const env = { PLANTS_TOKEN: token }

/** Answers after a time in which a line is shown. */
async function lateService(): Promise<Hostile> {
  return Hostile.listen({ posts: [(socket) => void takeTime(2500).then(() => socket.write(json(200, { name: 'Fern' })))] })
}

test('a terminal is told each second for what is waited, and the line is taken away', async () => {
  const remote = await lateService()
  const { code, screen } = await terminal([...create, remote.url, '--no-color'], temporaryFolder(), env).ended
  const host = `127.0.0.1:${remote.port}`
  expect(code).toBe(0)
  expect(screen).toContain(`\rWaiting for ${host}\u2026 (1 s)\u001b[K\rWaiting for ${host}\u2026 (2 s)\u001b[K\r\u001b[K`)
  expect(screen.slice(screen.lastIndexOf('\u001b[K'))).toContain('Planted Fern (id 1)')
})

test('so it is during an import', async () => {
  const service = await PlantService.listen({ deed: async ({ index }) => (index === 5 ? takeTime(2500) : undefined) })
  const run = new RemoteImport(plantLines(10), service.url)
  const { code, screen } = await terminal(['import', 'plants.ndjson', '--store', service.url], run.folder, { PLANTS_TOKEN: token }).ended
  expect({ code, screen }).toEqual({ code: 0, screen: expect.stringContaining(`Waiting for ${new URL(service.url).host}\u2026 (1 s)`) })
})

test('a warning stands on a line of its own', async () => {
  const busy = json(503, { error: 503, message: 'Busy' })
  const remote = await Hostile.listen({
    posts: [(socket) => void takeTime(1500).then(() => socket.write(busy)), json(200, { name: 'Fern' })],
  })
  const { screen } = await terminal([...create, remote.url, '--no-color'], temporaryFolder(), env).ended
  expect(screen).toMatch(/\(1 s\)\u001b\[K\r\u001b\[Kplants: Busy\. Trying again/)
})

test('a pipe, JSON errors and --verbose get no such line', async () => {
  for (const flags of [[], ['--output', 'json'], ['--verbose']]) {
    const remote = await lateService()
    const { code, err } = await plants([...create, remote.url, ...flags], temporaryFolder(), { env })
    expect({ code, isWaiting: err.includes('Waiting') }).toEqual({ code: 0, isWaiting: false })
  }
  for (const flag of ['--output=json', '--verbose']) {
    const remote = await lateService()
    const { screen } = await terminal([...create, remote.url, flag], temporaryFolder(), env).ended
    expect(screen).not.toContain('Waiting')
  }
})
