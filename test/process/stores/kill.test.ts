import { expect, test } from 'vitest'
import { rounds } from '../../helpers/rounds.js'
import { idsIn } from '../../helpers/sqlite-file.js'
import { World } from '../../helpers/world.js'

const atOnce = 6

test('a plant that was answered stays when the processes around it are killed', {
  timeout: rounds(60_000),
}, async () => {
  const world = new World()
  const answered: number[] = []
  for (let round = 0; round < rounds(6); round += 1) {
    const ids = Array.from({ length: atOnce }, (_, index) => round * atOnce + index)
    const creates = ids.map((id) => world.start(`create --id ${id} --name Fern`))
    const enough = answered.length + 1 + (round % atOnce)
    for (const [index, create] of creates.entries()) {
      create.stdout?.once('data', () => {
        answered.push(ids[index] ?? -1)
        if (answered.length === enough) for (const each of creates) each.kill('SIGKILL')
      })
    }
    const results = await Promise.all(creates)
    expect(results.filter(({ exitCode, signal }) => exitCode !== 0 && signal !== 'SIGKILL')).toEqual([])
    const { code, out, err } = await world.spawn('list')
    const plants = idsIn(world.store).map((id) => `{"id":${id},"name":"Fern"}\n`)
    expect({ code, err, out }).toEqual({ code: 0, err: '', out: plants.join('') })
    expect(idsIn(world.store)).toEqual(expect.arrayContaining(answered))
    expect(Math.max(...idsIn(world.store))).toBeLessThan((round + 1) * atOnce)
  }
})
