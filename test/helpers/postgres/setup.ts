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
  const run = new Run()
  const door = createServer((request, response) => {
    const end = (status: number, body: unknown) =>
      response.writeHead(status, { connection: 'close' }).end(JSON.stringify(body))
    run.answer(request.url ?? '').then(
      (body) => end(200, body),
      (error) => end(500, String(error?.stack ?? error)),
    )
  })
  await once(door.listen(0, '127.0.0.1'), 'listening')
  project.provide('postgres', `http://127.0.0.1:${(door.address() as AddressInfo).port}`)
  return async () => {
    door.close()
    await run.end()
  }
}

class Run {
  readonly #templates = new Map<number, Promise<Template>>()
  readonly #servers = new Map<number, Promise<PostgresServer>>()

  /** @param path "/templates/0" is the template of the first installation, "/servers/0" the server that all share */
  async answer(path: string): Promise<Template | Place> {
    const [, what, which] = path.split('/')
    if (what === 'templates') return this.#template(Number(which))
    const { socketFolder, port } = await only(this.#servers, Number(which), (number) => this.#start(number))
    return { socketFolder, port }
  }

  async end(): Promise<void> {
    for (const server of this.#servers.values()) await server.then((each) => each.remove())
    for (const template of this.#templates.values()) rmSync((await template).folder, { recursive: true, force: true })
  }

  #template(which: number): Promise<Template> {
    return only(this.#templates, which, () => makeTemplate(installations[which]))
  }

  async #start(which: number): Promise<PostgresServer> {
    return PostgresServer.start(await this.#template(which), { asksPassword: true })
  }
}

/** What was made of a number before, or is now. */
function only<Made>(
  made: Map<number, Promise<Made>>,
  which: number,
  make: (which: number) => Promise<Made>,
): Promise<Made> {
  const found = made.get(which) ?? make(which)
  made.set(which, found)
  return found
}
