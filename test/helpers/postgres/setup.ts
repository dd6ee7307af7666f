import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestProject } from 'vitest/node'
import { makeTemplate, type Template } from './cluster.js'
import { installations } from './installation.js'
import type { Place } from './query.js'
import { PostgresServer } from './server.js'

declare module 'vitest' {
  interface ProvidedContext {
    /** where the tests ask for what they share */
    postgres: string
  }
}

/**
 * Gives the processes of a run what they share, made when the first asks for it: a run that asks for none waits for
 * none.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const templates: Record<string, Promise<Template>> = {}
  const servers: Record<string, Promise<PostgresServer>> = {}

  /** "/templates/0" is the template of the first installation, "/servers/0" the server that all share. */
  async function answer(path: string): Promise<Template | Place> {
    const [, what, which = ''] = path.split('/')
    templates[which] ??= makeTemplate(installations[Number(which)])
    const template = await templates[which]
    if (what === 'templates') return template
    servers[which] ??= PostgresServer.start(template, { asksPassword: true })
    const { socketFolder, port } = await servers[which]
    return { socketFolder, port }
  }

  const door = createServer((request, response) => {
    const end = (status: number, body: unknown) =>
      response.writeHead(status, { connection: 'close' }).end(JSON.stringify(body))
    answer(request.url ?? '').then(
      (body) => end(200, body),
      (error) => end(500, String(error?.stack ?? error)),
    )
  })
  await once(door.listen(0, '127.0.0.1'), 'listening')
  project.provide('postgres', `http://127.0.0.1:${(door.address() as AddressInfo).port}`)
  return async () => {
    door.close()
    for (const server of Object.values(servers)) await (await server).remove()
    for (const template of Object.values(templates))
      rmSync((await template).folder, { recursive: true, force: true })
  }
}
