import { readSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Hostile, json } from '../../helpers/hostile.js'
import { token } from '../../helpers/http-store.js'
import { isLinux } from '../../helpers/linux.js'
import { bash, intoPipe } from '../../helpers/process.js'
import { printed, World } from '../../helpers/world.js'

const env = { PLANTS_TOKEN: token }
const fern = 'create --id 1 --name Fern --verbose --store'
const done = [json(200, { name: 'Fern' })]
const busy = () => json(503, { error: 503, message: 'Busy' })
const refusal = () => json(400, { error: 422, message: 'No ferns' })

/** Starts the program with a stderr that is full and that nobody reads. */
function intoFullPipe({ url }: Hostile) {
  return intoPipe(new World(), 2, `${fern} ${url} --output text`, { env, isFull: true })
}

describe('with --verbose', () => {
  test.each([
    ['has no reader', '2> >(true)'],
    ['is closed', '2>&-'],
    ...(isLinux ? [['takes nothing', '2> /dev/full']] : []),
  ])('a stderr that %s changes nothing', async (_, redirection) => {
    const { url } = await Hostile.listen({ posts: [busy(), ...done] })
    const create = `"$plants" ${fern} ${url} ${redirection}`
    expect(await bash(new World(), create, env)).toEqual(printed('{"name":"Fern"}\n'))
  })

  test.runIf(isLinux)('a stderr that nobody reads delays nothing (a full pipe)', async () => {
    const service = await Hostile.listen({ posts: done })
    const { exitCode, stdout } = await intoFullPipe(service).process
    expect([exitCode, stdout]).toEqual([0, 'Planted Fern (id 1)\n'])
  })

  test.runIf(isLinux)(
    'a slow reader gets every line whole and in order, and the error last (a full pipe)',
    async () => {
      const service = await Hostile.listen({ posts: [busy(), refusal()] })
      const { process: child, reader, read } = intoFullPipe(service)
      readSync(reader, Buffer.alloc(64)) // room for some of the first line
      await expect.poll(() => service.requests.length, { interval: 5 }).toBe(2)
      let said = ''
      for await (const chunk of read(1000)) said += chunk
      const lines = said.replace(/^\0+/, '').trimEnd().split('\n')
      expect((await child).exitCode).toBe(1)
      const kinds = lines.flatMap((line) => /^(> POST|< \d+|plants: )/.exec(line)?.[0] ?? [])
      const exchange = ['> POST', expect.stringMatching(/^< \d/), 'plants: ']
      expect(kinds).toEqual([...exchange, ...exchange])
      expect(lines.filter((line) => !/^(\* |> |< |plants: | {2})/.test(line))).toEqual([])
    },
  )
})
