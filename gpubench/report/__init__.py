"""What people read: sections, and the pages, Markdown and terminal tables that are made of them."""
