import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { launch, type RunningService, testToken } from './service.js'
import { temporaryFolder } from './temporary.js'

/** One of several services of one store, which is started again where it was when it has ended. */
export class ServiceNode {
  readonly socket: string
  readonly #folder = temporaryFolder()
  readonly #args: string[]
  readonly #env: Record<string, string>
  #run: ReturnType<typeof launch>

  private constructor(args: string[], env: Record<string, string>) {
    this.socket = join(this.#folder, 'socket')
    this.#args = ['--socket', this.socket, '--log-level', 'error', ...args]
    this.#env = { PLANTS_SERVE_TOKEN: testToken, ...env }
    this.#run = this.#launch()
    onTestFinished(() => this.kill())
  }

  /** @param args of `plants serve` */
  static async start(args: string[], env: Record<string, string> = {}): Promise<ServiceNode> {
    const node = new ServiceNode(args, env)
    await node.running()
    return node
  }

  running(): Promise<RunningService> {
    return this.#run.ready
  }

  /** Starts it again after it was killed. */
  async start(): Promise<void> {
    this.#run = this.#launch()
    await this.running()
  }

  /** Kills it without a warning. */
  async kill(): Promise<void> {
    this.#run.child.kill('SIGKILL')
    await this.#run.ended
  }

  #launch() {
    return launch(this.#args, this.#folder, { env: this.#env })
  }
}
