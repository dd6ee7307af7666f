/*
 * The pages of `docs` for users, which `plants help` prints. They have 100 KB, more than half of
 * what a `plants create` loads, so this file is imported only where it is used.
 */
import pages from '../../docs?pages'
import { formatMarkdown } from '../output/markdown.js'

/** Lists the topics with the titles of their pages. */
export function listTopics(): [topic: string, title: string][] {
  return Array.from(pages, ([topic, page]) => [topic, page.slice(2, page.indexOf('\n'))])
}

/** @returns undefined if no page has this name */
export function formatPage(topic: string, width: number): string | undefined {
  const page = pages.get(topic)
  return page && formatMarkdown(page, width, formatLink)
}

/** Names the command that prints the page of a link. Another link is only its label. */
function formatLink(label: string, target: string): string {
  const [, topic = ''] = /^([\w-]+)\.md/.exec(target) ?? []
  return pages.has(topic) ? `${label} (plants\u00a0help\u00a0${topic})` : label
}
