import { once } from 'node:events'
import { expect, test } from 'vitest'
import { type Answer, Hostile, json } from '../../helpers/hostile.js'
import { token } from '../../helpers/remote.js'
import { World } from '../../helpers/world.js'

const env = { PLANTS_TOKEN: token }
const created = json(200, { name: 'Fern' })

/** An answer that is held back until it is let go. */
function held(answer: string | Buffer): { answer: Answer; letGo(): void } {
  const going = new AbortController()
  return {
    answer: (socket) => void once(going.signal, 'abort').then(() => socket.write(answer)),
    letGo: () => going.abort(),
  }
}

test('a terminal is told what is waited for, and for how long, in a line that is removed before any other', async () => {
  const busy = held(json(503, { error: 503, message: 'Busy' }))
  const done = held(created)
  const remote = await Hostile.listen({ posts: [busy.answer, done.answer] })
  const session = new World().terminal(`create --id 1 --name Fern --no-color --store ${remote.url}`, env)
  const waiting = (seconds: number) => `\rWaiting for 127.0.0.1:${remote.port}\u2026 (${seconds} s)\u001b[K`
  await session.see(waiting(1) + waiting(2))
  busy.letGo()
  await session.see('plants: Busy. Trying again')
  await session.see('\rWaiting')
  done.letGo()
  const { code, screen } = await session.ended
  expect(code).toBe(0)
  expect(screen).toMatch(/ s\)\u001b\[K\r\u001b\[Kplants: Busy\. Trying again/)
  expect(screen).toMatch(/ s\)\u001b\[K\r\u001b\[KPlanted Fern \(id 1\)\r\n$/)
})

test('so is it during an import', async () => {
  const { answer, letGo } = held(created)
  const remote = await Hostile.listen({ posts: [created, answer] })
  const user = new World()
  user.write('plants.ndjson', '{"id":1,"name":"Fern"}\n{"id":2,"name":"Fern"}\n')
  const session = user.terminal(`import ${user.home}/plants.ndjson --store ${remote.url}`, env)
  await session.see(`Waiting for 127.0.0.1:${remote.port}\u2026 (1 s)`)
  letGo()
  expect((await session.ended).code).toBe(0)
})
